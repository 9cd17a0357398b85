package dev.penstock.actors.spi;

import java.util.List;
import java.util.stream.IntStream;

/**
 * One committed training step.
 *
 * @param step from 1
 * @param loss mean over the step's tokens, before the update
 * @param gradientNorm global L2 norm before clipping
 * @param clipFactor factor that was applied to the gradients
 * @param startNanos and {@code endNanos}: from the start order to the last rank's done, on the
 *     clock of {@link System#nanoTime} of this host
 * @param ranks entry r is rank r
 * @param skipped steps before it that the optimizer has not seen, because they overflowed
 */
public record StepReport(
        long step,
        double loss,
        double gradientNorm,
        double clipFactor,
        long startNanos,
        long endNanos,
        List<RankStep> ranks,
        long skipped) {
    public StepReport {
        ranks = List.copyOf(ranks);
    }

    /** After no step that overflowed. */
    public StepReport(
            long step,
            double loss,
            double gradientNorm,
            double clipFactor,
            long startNanos,
            long endNanos,
            List<RankStep> ranks) {
        this(step, loss, gradientNorm, clipFactor, startNanos, endNanos, ranks, 0);
    }

    /** The number of the optimizer's update, from 1: its learning rate goes by it. */
    public long update() {
        return step - skipped;
    }

    /**
     * The same of the pipeline alone that a rank belongs to, whose ranks are numbered as in the
     * schedule: one tensor shard of every stage, in one replica.
     */
    public StepReport ofPipelineOf(RankGrid grid, int rank) {
        if (grid.isPipelineAlone()) {
            return this;
        }
        return new StepReport(
                step,
                loss,
                gradientNorm,
                clipFactor,
                startNanos,
                endNanos,
                IntStream.range(0, grid.pipeline())
                        .mapToObj(p -> ranks.get(grid.sibling(rank, p)).as(p))
                        .toList(),
                skipped);
    }
}
