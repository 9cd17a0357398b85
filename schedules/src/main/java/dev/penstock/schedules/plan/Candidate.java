package dev.penstock.schedules.plan;

import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.plan.work.HardwareCosts;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.StageTimes;
import dev.penstock.schedules.plan.work.StepTail;

/**
 * A choice with its cut that may fit and is not yet proved.
 *
 * @param reductions entry s: nanoseconds of stage s's reduction
 * @param tails entry r: nanoseconds of rank r after its reductions
 * @param split whether backwards are in two parts
 * @param leastNanos no order makes a faster step of it
 */
record Candidate(
        PlanChoice choice,
        PipelineShape shape,
        Cut cut,
        StageTimes times,
        HardwareCosts costs,
        long[] reductions,
        long[] tails,
        boolean split,
        long leastNanos) {

    static Candidate of(PlanChoice choice, PipelineShape shape, Cut cut, boolean split) {
        var times = new StageTimes(cut.work(), cut.partition(), cut.placement(), choice.zero());
        long[] reductions =
                StepTail.reductions(cut.work(), cut.partition(), cut.placement(), choice.zero());
        var costs = new HardwareCosts(cut.work(), cut.placement(), times, reductions);
        long[] tails = StepTail.nanos(cut.work(), cut.partition(), cut.placement(), choice.zero());
        return new Candidate(
                choice,
                shape,
                cut,
                times,
                costs,
                reductions,
                tails,
                split,
                LeastTime.ofStep(
                        costs,
                        cut,
                        times,
                        StepTail.least(cut.placement(), reductions, tails),
                        split));
    }

    /** The same for another kind of schedule with the same bound. */
    Candidate with(String kind) {
        return new Candidate(
                choice.withKind(kind),
                shape,
                cut,
                times,
                costs,
                reductions,
                tails,
                split,
                leastNanos);
    }

    /** Entry r: what rank r waits for at least after its last backward. */
    long[] leastTails() {
        return StepTail.least(cut.placement(), reductions, tails);
    }

    /** The same on another cut. */
    Candidate with(Cut other) {
        return of(choice, shape, other, split);
    }

    /**
     * What a step will take, roughly; decides only what is looked at first. With split backwards
     * the weights' parts fill the gaps that the gradients' way back leaves, as far as they are as
     * long.
     */
    long expectedNanos() {
        if (!split) {
            return leastNanos;
        }
        long gaps = 0;
        for (int stage = 0; stage < choice.layout().pipeline(); stage++) {
            gaps +=
                    Math.max(0, times.backwardInput(stage, 0) - times.backwardWeight(stage, 0))
                            + costs.returnNanos(stage, 0);
        }
        return leastNanos + gaps;
    }
}
