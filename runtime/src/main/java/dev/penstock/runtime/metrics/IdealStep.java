package dev.penstock.runtime.metrics;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.MeasuredMeans;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * The best result that a schedule could have achieved for a measured step: the same program
 * simulated, where every forward and backward takes the mean time of its stage and slice over all
 * pipelines, or on its rank where replicas share micro-batches, and everything else is free, or
 * takes the time that links are given.
 *
 * @param timeline of the simulation; a receive or reduction begins when its rank begins to wait, as
 *     in a measured one
 */
public record IdealStep(Timeline timeline) {

    /** Simulates the program of a measured step. */
    public static IdealStep of(Timeline measured) {
        return of(List.of(measured));
    }

    /**
     * Same as {@link #of(Timeline)} for pipelines that ran the same program side by side.
     *
     * @param measured at least one
     */
    static IdealStep of(List<Timeline> measured) {
        return of(measured, UnaryOperator.identity());
    }

    /**
     * Same as {@link #of(List)} where tensors take time under way.
     *
     * @param links adds it to the costs of computations
     */
    static IdealStep of(List<Timeline> measured, UnaryOperator<CostModel> links) {
        Schedule schedule = measured.getFirst().schedule();
        var means = new MeasuredMeans();
        means.add(measured.stream().map(Timeline::withoutCollectives).toList());
        CostModel costs = links.apply(means.costs());
        return new IdealStep(withWaits(ScheduleSimulator.simulate(schedule, costs)));
    }

    public long makespanNanos() {
        return timeline.makespanNanos();
    }

    /** Returns the bubble of the schedule itself. */
    public double bubble() {
        return timeline.bubble().bubbleShare();
    }

    /** Returns how the time of the simulated step was spent. */
    public StepTimes times() {
        return StepTimes.of(timeline);
    }

    private static Timeline withWaits(Timeline simulated) {
        Schedule schedule = simulated.schedule();
        int ranks = schedule.programs().size();
        long[][] starts = new long[ranks][];
        long[][] ends = new long[ranks][];
        for (int rank = 0; rank < ranks; rank++) {
            List<Op> ops = schedule.program(rank).ops();
            starts[rank] = new long[ops.size()];
            ends[rank] = new long[ops.size()];
            long free = simulated.startNanos();
            for (int i = 0; i < ops.size(); i++) {
                boolean waits =
                        switch (Activity.of(ops.get(i))) {
                            case RECEIVE, REDUCE -> true;
                            case FORWARD, BACKWARD, SEND, IDLE, UPDATE -> false;
                        };
                starts[rank][i] = waits ? free : simulated.startNanos(rank, i);
                ends[rank][i] = simulated.endNanos(rank, i);
                free = ends[rank][i];
            }
        }
        return Timeline.measured(schedule, starts, ends);
    }
}
