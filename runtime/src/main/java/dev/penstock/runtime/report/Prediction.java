package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.StepTimes;
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
 * @param unseen steps, each with a timeline per pipeline
 */
record Prediction(RankGrid grid, Timeline simulated, List<Unseen> unseen) {
    /**
     * A step that the profile was not made from.
     *
     * @param pipelines in the order of {@link RankGrid#pipelines}
     */
    record Unseen(long step, List<Timeline> pipelines) {
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
            List<StepReport> steps,
            BiFunction<CostModel, Schedule, CostModel> links) {
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
            } else {
                unseen.add(new Unseen(step.step(), pipelines));
            }
        }
        CostModel profile = links.apply(means.costs(), schedule);
        return Optional.of(
                new Prediction(grid, ScheduleSimulator.simulate(schedule, profile), unseen));
    }

    Schedule schedule() {
        return simulated.schedule();
    }

    /** The step of median makespan, the one that stands for all. */
    Unseen median() {
        List<Unseen> sorted =
                unseen.stream().sorted(Comparator.comparingLong(Unseen::makespanNanos)).toList();
        return sorted.get((sorted.size() - 1) / 2);
    }

    /** Of the makespan of the median step: 0.05 where the simulation takes 5 % too long. */
    double makespanError() {
        return error(simulated.makespanNanos(), median().makespanNanos());
    }

    /** Predicted against measured, as a share of what was measured; NaN where that is nothing. */
    static double error(double predicted, double measured) {
        return measured == 0 ? Double.NaN : (predicted - measured) / measured;
    }
}
