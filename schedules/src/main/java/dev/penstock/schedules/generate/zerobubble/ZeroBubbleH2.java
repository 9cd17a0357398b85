package dev.penstock.schedules.generate.zerobubble;

import dev.penstock.schedules.generate.Seq1F1B;
import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * ZB-H2 (Zero Bubble Pipeline Parallelism, Qi et al. 2023, section 2.2): twice the memory of 1F1B
 * buys as many forwards as fill the time until the first gradient is back, and the backwards for
 * the weights, held back by 2 micro-batches per rank, turn the cool-down into a parallelogram: when
 * all ops take the same time, no rank idles between its first and its last.
 *
 * <p>4 ranks, 8 micro-batches, all ops of the same length:
 *
 * <pre>
 * rank 0 | F0 F1 F2 F3 F4 F5 F6 I0 W0 F7 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5 I6 W6 I7 W7
 * rank 1 |    F0 F1 F2 F3 F4 I0 F5 I1 F6 I2 W0 F7 I3 W1 I4 W2 I5 W3 I6 W4 I7 W5 W6 W7
 * rank 2 |       F0 F1 F2 I0 F3 I1 F4 I2 F5 I3 F6 I4 W0 F7 I5 W1 I6 W2 I7 W3 W4 W5 W6 W7
 * rank 3 |          F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 F5 I5 F6 I6 W0 F7 I7 W1 W2 W3 W4 W5 W6 W7
 * </pre>
 *
 * <p>Token slices return as in {@link Seq1F1B}.
 */
public final class ZeroBubbleH2 {
    private ZeroBubbleH2() {}

    /**
     * The order of every rank; any number of ranks, micro-batches and slices of any lengths.
     *
     * @throws IllegalArgumentException for chunks
     */
    public static Schedule schedule(PipelineShape shape) {
        return Pipeline.plain(
                "zb-h2",
                shape,
                (rank, program) -> {
                    int ranksBelow = shape.ranks() - rank - 1;
                    int ahead =
                            Math.min(2 * ranksBelow + shape.slices() - 1, shape.unitsPerStage());
                    int behind = Math.min(2 * rank, shape.unitsPerStage());
                    new SplitUnits(shape, program).alternate(ahead, behind);
                });
    }
}
