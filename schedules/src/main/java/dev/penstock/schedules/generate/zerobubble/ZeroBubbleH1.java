package dev.penstock.schedules.generate.zerobubble;

import dev.penstock.schedules.generate.Seq1F1B;
import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * ZB-H1 (Zero Bubble Pipeline Parallelism, Qi et al. 2023, section 2.1): 1F1B with its backward
 * split. Rank r holds the backward for the weights back by r micro-batches, so that every rank
 * holds as many as the first one does in 1F1B, gradients return sooner, and the weights fill what
 * was idle at the end.
 *
 * <p>4 ranks, 8 micro-batches, all ops of the same length (I: backward for the input, W: for the
 * weights):
 *
 * <pre>
 * rank 0 | F0 F1 F2 F3          I0 W0 F4 I1 W1 F5 I2 W2 F6 I3 W3 F7 I4 W4 I5 W5 I6 W6 I7 W7
 * rank 1 |    F0 F1 F2       I0 F3 I1 W0 F4 I2 W1 F5 I3 W2 F6 I4 W3 F7 I5 W4 I6 W5 I7 W6 W7
 * rank 2 |       F0 F1    I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 F6 I5 W3 F7 I6 W4 I7 W5 W6 W7
 * rank 3 |          F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 F6 I6 W3 F7 I7 W4 W5 W6 W7
 * </pre>
 *
 * <p>Token slices return as in {@link Seq1F1B}.
 */
public final class ZeroBubbleH1 {
    private ZeroBubbleH1() {}

    /**
     * The order of every rank; any number of ranks, micro-batches and slices of any lengths.
     *
     * @throws IllegalArgumentException for chunks
     */
    public static Schedule schedule(PipelineShape shape) {
        return Pipeline.plain(
                "zb-h1",
                shape,
                (rank, program) -> {
                    int ahead =
                            Math.min(
                                    shape.ranks() - rank - 2 + shape.slices(),
                                    shape.unitsPerStage());
                    int behind = Math.min(rank, shape.unitsPerStage());
                    new SplitUnits(shape, program).alternate(ahead, behind);
                });
    }
}
