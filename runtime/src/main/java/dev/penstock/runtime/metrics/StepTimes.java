package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Where the time of one step went.
 *
 * @param timeline when every op ran
 * @param ranks entry r is rank r, in nanoseconds; all activities but {@link Activity#UPDATE} add up
 *     to the timeline's makespan
 */
public record StepTimes(Timeline timeline, List<Map<Activity, Long>> ranks) {
    public StepTimes {
        ranks = List.copyOf(ranks);
    }

    /**
     * Adds up a step's op times.
     *
     * @param schedule the lowered program that was run
     * @throws IllegalArgumentException if the times are of another program
     */
    public static StepTimes of(Schedule schedule, StepReport report) {
        Timeline timeline =
                Timeline.measured(
                        schedule,
                        report.ranks().stream().map(RankStep::opStartNanos).toArray(long[][]::new),
                        report.ranks().stream().map(RankStep::opEndNanos).toArray(long[][]::new));
        List<Map<Activity, Long>> ranks = inOps(timeline);
        for (RankStep rank : report.ranks()) {
            long update = rank.updateEndNanos() - rank.updateStartNanos();
            ranks.get(rank.rank()).put(Activity.UPDATE, update);
        }
        return new StepTimes(timeline, ranks);
    }

    /** Adds up the op times of a timeline, which does not know the optimizer. */
    static StepTimes of(Timeline timeline) {
        return new StepTimes(timeline, inOps(timeline));
    }

    /** Time of a rank spent on an activity, in nanoseconds. */
    public long nanos(int rank, Activity activity) {
        return ranks.get(rank).getOrDefault(activity, 0L);
    }

    /** The mean over the ranks of the time spent on an activity. */
    public double meanNanos(Activity activity) {
        return ranks.stream()
                .mapToLong(rank -> rank.getOrDefault(activity, 0L))
                .average()
                .orElse(0);
    }

    /** From the first op's start to the last op's end over all ranks. */
    public long spanNanos() {
        return timeline.makespanNanos();
    }

    /** Share of all ranks' time that was not spent on forwards and backwards: 0 to 1. */
    public double bubble() {
        return timeline.bubble().bubbleShare();
    }

    private static List<Map<Activity, Long>> inOps(Timeline timeline) {
        List<Map<Activity, Long>> ranks = new ArrayList<>();
        for (RankProgram program : timeline.schedule().programs()) {
            ranks.add(ofRank(timeline, program.rank()));
        }
        return ranks;
    }

    private static Map<Activity, Long> ofRank(Timeline timeline, int rank) {
        List<Op> ops = timeline.schedule().program(rank).ops();
        Map<Activity, Long> times = new EnumMap<>(Activity.class);
        long inOps = 0;
        for (int i = 0; i < ops.size(); i++) {
            long nanos = timeline.durationNanos(rank, i);
            times.merge(Activity.of(ops.get(i)), nanos, Long::sum);
            inOps += nanos;
        }
        times.put(Activity.IDLE, Math.max(0, timeline.makespanNanos() - inOps));
        return times;
    }
}
