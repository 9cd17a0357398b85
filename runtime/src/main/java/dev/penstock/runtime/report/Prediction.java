package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.StepTimes;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.MeasuredMeans;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;

/**
 * How well the profile that a run leaves behind predicts a step of that run: half of the recent
 * steps make a profile, the program is simulated with it, and the result is held against the other
 * half, which it has not seen.
 *
 * @param grid of all ranks; all pipelines run the same program
 * @param simulated the program with the profile's costs
 * @param updateNanos what follows on the program's last op, by the profile
 * @param unseen steps, each with a timeline per pipeline
 * @param ownNanos the makespan of the program in the simulator, if every op takes what it took in
 *     the {@link #median} step: what is missing there lies between ops
 */
record Prediction(
        RankGrid grid, Timeline simulated, long updateNanos, List<Unseen> unseen, long ownNanos) {
    /**
     * A step that the profile was not made from.
     *
     * @param pipelines in the order of {@link RankGrid#pipelines}
     * @param updateNanos what followed on the last op
     */
    record Unseen(long step, List<Timeline> pipelines, long updateNanos) {
        /** From the first op of all pipelines to the last. */
        long makespanNanos() {
            long start = pipelines.stream().mapToLong(Timeline::startNanos).min().orElse(0);
            return pipelines.stream()
                            .mapToLong(each -> each.startNanos() + each.makespanNanos())
                            .max()
                            .orElse(0)
                    - start;
        }
    }

    /**
     * From steps of one program; empty if there are fewer than two.
     *
     * @param links adds the time of tensors under way to the costs of computations
     * @throws IllegalArgumentException if they are of another program
     */
    static Optional<Prediction> of(
            Schedule schedule,
            RankGrid grid,
            List<StepReport> recent,
            BiFunction<CostModel, Schedule, CostModel> links) {
        List<StepReport> steps = RunRecorder.warm(recent);
        if (steps.size() < 2) {
            return Optional.empty();
        }
        var means = new MeasuredMeans();
        List<Unseen> unseen = new ArrayList<>();
        for (int i = 0; i < steps.size(); i++) {
            StepReport step = steps.get(i);
            List<Timeline> pipelines = StepTimes.of(schedule, grid, step).pipelines();
            if (i % 2 == 0) {
                means.add(pipelines);
                means.addUpdate(StepTimes.updateNanos(step));
            } else {
                unseen.add(new Unseen(step.step(), pipelines, StepTimes.updateNanos(step)));
            }
        }
        CostModel profile = links.apply(means.costs(), schedule);
        Unseen median = median(unseen);
        long own =
                median.pipelines().stream()
                        .map(pipeline -> links.apply(new OwnTimes(pipeline), schedule))
                        .mapToLong(
                                costs ->
                                        ScheduleSimulator.simulate(schedule, costs).makespanNanos())
                        .max()
                        .orElseThrow();
        return Optional.of(
                new Prediction(
                        grid,
                        ScheduleSimulator.simulate(schedule, profile),
                        means.updateNanos(),
                        unseen,
                        own));
    }

    /**
     * Costs of a step that was measured: every op takes what it took, and waits are not among it.
     */
    private record OwnTimes(Timeline step) implements CostModel {
        @Override
        public long nanos(int rank, int position, Op op) {
            return switch (op) {
                case Op.Compute _, Op.Overlapped _ -> step.keptNanos(rank, position);
                case Op.GatherParameters _ ->
                        step.tellsCollectives() && step.copyNanos(rank, position) == 0
                                ? step.keptNanos(rank, position)
                                : 0;
                case Op.ReduceGradients _ ->
                        step.tellsCollectives() ? step.keptNanos(rank, position) : 0;
                case Op.Transfer _, Op.ActivationOp _, Op.ReleaseParameters _ -> 0;
            };
        }

        @Override
        public long backgroundNanos(int rank, Op op) {
            List<Op> ops = step.schedule().program(rank).ops();
            return step.copyNanos(rank, ops.indexOf(op));
        }
    }

    Schedule schedule() {
        return simulated.schedule();
    }

    /** The step of median makespan, the one that stands for all. */
    Unseen median() {
        return median(unseen);
    }

    private static Unseen median(List<Unseen> unseen) {
        List<Unseen> sorted =
                unseen.stream().sorted(Comparator.comparingLong(Unseen::makespanNanos)).toList();
        return sorted.get((sorted.size() - 1) / 2);
    }

    /** Of the makespan of the median step: 0.05 where the simulation takes 5 % too long. */
    double makespanError() {
        return error(simulated.makespanNanos(), median().makespanNanos());
    }

    /** Of all of the median step, commit and update too. */
    double stepError() {
        return error(
                simulated.makespanNanos() + updateNanos,
                median().makespanNanos() + median().updateNanos());
    }

    /** Predicted against measured, as a share of what was measured; NaN where that is nothing. */
    static double error(double predicted, double measured) {
        return measured == 0 ? Double.NaN : (predicted - measured) / measured;
    }
}
