package dev.penstock.schedules.generate.wired;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Orders for a wiring, worked out by running it in thought: a rank that is free takes a backward if
 * one can run, else a forward if it may hold one more micro-batch, and else, where backwards are in
 * two parts, gradients of weights, which so fill the bubbles. Of several, the one that could run
 * first is taken, then the lower micro-batch; of forwards, the one whose turn it is for those whom
 * the rank serves. A rank is never idle while it could compute.
 *
 * <p>3 peers of 2 stages with 2 micro-batches each; rank 3 (stage 1 of peer 1) is gone, and its
 * micro-batches 2 and 3 are with ranks 1 and 5. Backwards in two parts, every op as long as every
 * other:
 *
 * <pre>
 * rank 0 | F0 F1    I0 W0             I1 W1
 * rank 1 |    F0 I0 W0 F2 I2 W2 F1 I1 W1
 * rank 2 | F2 F3             I2 I3 W2 W3
 * rank 3 |
 * rank 4 | F4 F5    I4 W4             I5 W5
 * rank 5 |    F4 I4 W4 F3 I3 W3 F5 I5 W5
 * </pre>
 *
 * <p>Every such order can run: a micro-batch that has begun at a stage has begun at all stages
 * before it, and none of its ops waits for room; so the last stage always comes to its backwards,
 * and each stage before it after that.
 */
public final class WiredOrder {
    private WiredOrder() {}

    /**
     * How backwards run.
     *
     * <p>{@link #FULL} is 1F1B of every replica where the wiring is straight.
     */
    public enum Backwards {
        /** In one op. */
        FULL("wired-1f1b"),
        /** In two parts, and those for the weights fill bubbles. */
        SPLIT("wired-zb");

        private final String kind;

        Backwards(String kind) {
            this.kind = kind;
        }

        /** The name of the orders. */
        public String kind() {
            return kind;
        }
    }

    /** The most micro-batches that ranks hold in 1F1B: rank r of a pipeline of P holds P - r. */
    public static List<Integer> usualCaps(PipelineShape shape) {
        return IntStream.range(0, shape.ranks())
                .mapToObj(rank -> shape.pipelineRanks() - rank % shape.pipelineRanks())
                .toList();
    }

    /**
     * The order of every rank.
     *
     * @param placement wired for the shape; ranks that are absent do nothing
     * @param costs entry r is of rank r
     * @param caps entry r is the most micro-batches that rank r holds at a time, at least 1
     * @throws IllegalArgumentException for more than one stage per rank
     */
    public static Schedule schedule(
            PipelineShape shape,
            Placement placement,
            Backwards backwards,
            List<OpCosts> costs,
            List<Integer> caps) {
        Requirements.chunks(backwards.kind(), 1, shape);
        if (costs.size() != shape.ranks()
                || caps.size() != shape.ranks()
                || caps.stream().anyMatch(cap -> cap < 1)) {
            throw new IllegalArgumentException(
                    "each of %d ranks needs costs and a cap of 1 micro-batch or more, got %d costs and the caps %s"
                            .formatted(shape.ranks(), costs.size(), caps));
        }
        var run = new WiredRun(shape, placement, backwards == Backwards.SPLIT, costs, caps);
        return new Schedule(backwards.kind(), shape, placement, run.programs());
    }
}
