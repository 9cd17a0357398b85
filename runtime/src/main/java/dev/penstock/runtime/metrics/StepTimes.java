package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * How the time of one step was spent.
 *
 * @param pipelines when every op ran, of each pipeline; in the order of {@link
 *     RankGrid#pipelines()}
 * @param ranks entry r is rank r, in nanoseconds; all activities but {@link Activity#UPDATE} add up
 *     to the span
 */
public record StepTimes(List<Timeline> pipelines, List<Map<Activity, Long>> ranks) {
    public StepTimes {
        pipelines = List.copyOf(pipelines);
        ranks = List.copyOf(ranks);
    }

    /**
     * Adds up a step's op times.
     *
     * @param schedule the lowered program that every pipeline ran
     * @param grid of all ranks
     * @throws IllegalArgumentException if the times are of another program or grid
     */
    public static StepTimes of(Schedule schedule, RankGrid grid, StepReport report) {
        if (report.ranks().size() != grid.ranks()) {
            throw new IllegalArgumentException(
                    "expected the times of %d ranks, got those of %d"
                            .formatted(grid.ranks(), report.ranks().size()));
        }
        List<Integer> firstRanks = grid.pipelines();
        List<Timeline> pipelines =
                firstRanks.stream()
                        .map(first -> timeline(schedule, report.ofPipelineOf(grid, first)))
                        .toList();
        long span = span(pipelines);
        List<Map<Activity, Long>> ranks =
                new ArrayList<>(Collections.nCopies(grid.ranks(), Map.of()));
        for (int i = 0; i < pipelines.size(); i++) {
            for (int program = 0; program < grid.pipeline(); program++) {
                RankStep rank = report.ranks().get(grid.sibling(firstRanks.get(i), program));
                if (!isPresent(schedule, program)) {
                    continue;
                }
                Map<Activity, Long> times = ofRank(pipelines.get(i), program, span);
                times.put(Activity.UPDATE, rank.updateEndNanos() - rank.updateStartNanos());
                ranks.set(rank.rank(), times);
            }
        }
        return new StepTimes(pipelines, ranks);
    }

    /**
     * Returns what followed on the last op of a step: its commit and the updates, up to the end of
     * the last one.
     */
    public static long updateNanos(StepReport report) {
        long ops = Long.MIN_VALUE;
        long updates = Long.MIN_VALUE;
        for (RankStep rank : report.ranks()) {
            if (!rank.isAbsent()) {
                ops = Math.max(ops, LongStream.of(rank.opEndNanos()).max().orElse(ops));
                updates = Math.max(updates, rank.updateEndNanos());
            }
        }
        return Math.max(0, updates - ops);
    }

    /** Whether a rank takes part; one that does not has no times, and counts in no mean. */
    private static boolean isPresent(Schedule schedule, int program) {
        return schedule.placement().wiring().map(wired -> wired.isPresent(program)).orElse(true);
    }

    /** Adds up the op times of a step with pipeline parallelism alone. */
    public static StepTimes of(Schedule schedule, StepReport report) {
        return of(schedule, RankGrid.pipeline(schedule.programs().size()), report);
    }

    /** Adds up the op times of a timeline, which does not include the optimizer. */
    static StepTimes of(Timeline timeline) {
        return new StepTimes(
                List.of(timeline),
                timeline.schedule().programs().stream()
                        .map(
                                program ->
                                        isPresent(timeline.schedule(), program.rank())
                                                ? ofRank(
                                                        timeline,
                                                        program.rank(),
                                                        timeline.makespanNanos())
                                                : Map.<Activity, Long>of())
                        .toList());
    }

    private static Timeline timeline(Schedule schedule, StepReport pipeline) {
        long[][] starts = ofRanks(pipeline, RankStep::opStartNanos);
        long[][] ends = ofRanks(pipeline, RankStep::opEndNanos);
        long[][] collectives = ofRanks(pipeline, RankStep::collectiveNanos);
        boolean told =
                IntStream.range(0, starts.length)
                        .allMatch(rank -> collectives[rank].length == starts[rank].length);
        long[][] copies = ofRanks(pipeline, RankStep::copyNanos);
        return told
                ? Timeline.measured(schedule, starts, ends, collectives, copies)
                : Timeline.measured(schedule, starts, ends);
    }

    private static long[][] ofRanks(StepReport pipeline, Function<RankStep, long[]> times) {
        return pipeline.ranks().stream().map(times).toArray(long[][]::new);
    }

    private static long span(List<Timeline> pipelines) {
        long first = pipelines.stream().mapToLong(Timeline::startNanos).min().orElse(0);
        long last =
                pipelines.stream()
                        .mapToLong(each -> each.startNanos() + each.makespanNanos())
                        .max()
                        .orElse(0);
        return last - first;
    }

    /** Returns the time that a rank spent on an activity, in nanoseconds. */
    public long nanos(int rank, Activity activity) {
        return ranks.get(rank).getOrDefault(activity, 0L);
    }

    /** Returns the mean over the ranks of the time spent on an activity. */
    public double meanNanos(Activity activity) {
        return present().mapToLong(rank -> rank.getOrDefault(activity, 0L)).average().orElse(0);
    }

    /** Returns the time from the first op's start to the last op's end over all ranks. */
    public long spanNanos() {
        return span(pipelines);
    }

    /**
     * Returns the share of all ranks' time that was not spent on forwards and backwards: 0 to 1.
     */
    public double bubble() {
        long span = spanNanos();
        long idle = 0;
        for (Map<Activity, Long> rank : present().toList()) {
            idle += span;
            for (Map.Entry<Activity, Long> spent : rank.entrySet()) {
                idle -= spent.getKey().isCompute() ? spent.getValue() : 0;
            }
        }
        return span == 0 ? 0 : idle / ((double) span * present().count());
    }

    private Stream<Map<Activity, Long>> present() {
        return ranks.stream().filter(times -> !times.isEmpty());
    }

    private static Map<Activity, Long> ofRank(Timeline timeline, int rank, long span) {
        List<Op> ops = timeline.schedule().program(rank).ops();
        Map<Activity, Long> times = new EnumMap<>(Activity.class);
        long inOps = 0;
        for (int i = 0; i < ops.size(); i++) {
            long nanos = timeline.durationNanos(rank, i);
            times.merge(Activity.of(ops.get(i)), nanos, Long::sum);
            inOps += nanos;
        }
        times.put(Activity.IDLE, Math.max(0, span - inOps));
        return times;
    }
}
