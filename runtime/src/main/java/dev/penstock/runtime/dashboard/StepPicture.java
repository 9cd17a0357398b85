package dev.penstock.runtime.dashboard;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.metrics.IdealStep;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * When the ops of a step ran, and when they would have run in the ideal step of the same op times.
 * Microseconds since the step's start.
 *
 * @param measured all ranks
 * @param simulated the ranks of the first pipeline; empty if it could not be simulated
 */
record StepPicture(
        long step,
        List<Lane> measured,
        List<Lane> simulated,
        double bubbleMeasured,
        double bubblePredicted) {
    private static final Logger LOG = LoggerFactory.getLogger(StepPicture.class);
    private static final int MICRO = 1_000;

    /**
     * A rank's ops in the order of its program.
     *
     * @param program which of the schedule's programs it ran
     * @param place what the rank is, for people: {@code rank 3 · replica 1}
     * @param update start and end of the optimizer; empty if there was none
     */
    record Lane(
            int rank, int program, String place, int[] starts, int[] ends, List<Integer> update) {}

    /**
     * @param links adds what links take to the costs of computations
     */
    static StepPicture of(
            RunEvent.OpTimes times,
            Optional<Schedule> schedule,
            RankGrid grid,
            UnaryOperator<CostModel> links) {
        List<Lane> measured = new ArrayList<>();
        for (int rank = 0; rank < times.ranks().size(); rank++) {
            RunEvent.OpTimes.Rank ops = times.ranks().get(rank);
            measured.add(
                    new Lane(
                            rank,
                            rank < grid.ranks() ? grid.placeOf(rank).pipeline() : rank,
                            place(rank, grid),
                            ops.starts(),
                            ops.ends(),
                            ops.updateEnd() > ops.updateStart()
                                    ? List.of(ops.updateStart(), ops.updateEnd())
                                    : List.of()));
        }
        try {
            return schedule.map(program -> withIdeal(times.step(), measured, program, grid, links))
                    .orElseGet(() -> alone(times.step(), measured));
        } catch (IllegalArgumentException e) {
            LOG.debug("the op times of step {} are of another program", times.step(), e);
            return alone(times.step(), measured);
        }
    }

    private static StepPicture alone(long step, List<Lane> measured) {
        return new StepPicture(step, measured, List.of(), Double.NaN, Double.NaN);
    }

    private static StepPicture withIdeal(
            long step,
            List<Lane> measured,
            Schedule schedule,
            RankGrid grid,
            UnaryOperator<CostModel> links) {
        int ranks = grid.pipeline();
        long[][] starts = new long[ranks][];
        long[][] ends = new long[ranks][];
        for (int p = 0; p < ranks; p++) {
            Lane lane = measured.get(grid.rankAt(RankPlace.single(p)));
            starts[p] = nanos(lane.starts());
            ends[p] = nanos(lane.ends());
        }
        Timeline timeline = Timeline.measured(schedule, starts, ends);
        IdealStep ideal = IdealStep.of(List.of(timeline), links);
        long shift = timeline.startNanos() - ideal.timeline().startNanos();
        List<Lane> simulated = new ArrayList<>();
        for (int p = 0; p < ranks; p++) {
            int ops = schedule.program(p).ops().size();
            int[] idealStarts = new int[ops];
            int[] idealEnds = new int[ops];
            for (int i = 0; i < ops; i++) {
                idealStarts[i] = (int) ((ideal.timeline().startNanos(p, i) + shift) / MICRO);
                idealEnds[i] = (int) ((ideal.timeline().endNanos(p, i) + shift) / MICRO);
            }
            simulated.add(
                    new Lane(
                            grid.rankAt(RankPlace.single(p)),
                            p,
                            "simulated",
                            idealStarts,
                            idealEnds,
                            List.of()));
        }
        return new StepPicture(
                step, measured, simulated, timeline.bubble().bubbleShare(), ideal.bubble());
    }

    private static String place(int rank, RankGrid grid) {
        if (grid.isPipelineAlone() || rank >= grid.ranks()) {
            return "rank " + rank;
        }
        RankPlace place = grid.placeOf(rank);
        StringBuilder text = new StringBuilder("rank " + rank);
        part(text, "replica", place.data(), grid.data());
        part(text, "context", place.context(), grid.context());
        part(text, "shard", place.tensor(), grid.tensor());
        return text.toString();
    }

    private static void part(StringBuilder text, String what, int index, int of) {
        if (of > 1) {
            text.append(" · ").append(what).append(' ').append(index);
        }
    }

    private static long[] nanos(int[] micros) {
        long[] nanos = new long[micros.length];
        for (int i = 0; i < nanos.length; i++) {
            nanos[i] = (long) micros[i] * MICRO;
        }
        return nanos;
    }
}
