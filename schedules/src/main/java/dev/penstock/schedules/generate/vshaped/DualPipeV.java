package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.generate.base.RisingMicroBatches;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * DualPipeV: DualPipe (DeepSeek-V3 technical report, arXiv 2412.19437, section 3.2.1), cut in half
 * by Sea AI Lab. The model goes down the ranks and up again; in the steady phase every forward of
 * one chunk runs together with a backward of the other, so that the communication of each hides
 * behind the computation of its partner.
 *
 * <p>The rank that waits longest waits for (ranks - 1) x (F&amp;B + B - 3W) in a step, where
 * F&amp;B is the cost of such a pair, if a forward takes as long as a backward for the input, and
 * one for the weights no longer. A rank holds at most 2 x ranks + 1 chunks.
 *
 * <p>2 ranks, 4 micro-batches; capitals are the low chunk, small letters the high one, F3+b1 is an
 * overlapped pair that takes as long as both:
 *
 * <pre>
 * rank 0 | F0 F1 F2 f0 i0 w0 f1 F3+b1       f2+B0    b2       f3+B1    b3    I2 W2 I3 W3
 * rank 1 |    F0 f0 F1 f1 F2 b0    f2+B0    F3+b1    f3+B1    b2    B2       i3 I3 w3 W3
 * </pre>
 */
public final class DualPipeV {
    private static final int LOW = 0;
    private static final int HIGH = 1;

    private DualPipeV() {}

    /**
     * The order of every rank.
     *
     * @throws IllegalArgumentException for fewer than 2 x ranks micro-batches, slices, or other
     *     than two chunks
     */
    public static Schedule schedule(PipelineShape shape) {
        Requirements.wholeSequences("dualpipe-v", "seq1f1b", shape);
        int ranks = shape.ranks();
        int microBatches = shape.microBatches();
        if (microBatches < 2 * ranks) {
            throw new IllegalArgumentException(
                    "dualpipe-v on %d ranks needs at least %d micro-batches, got %d; try %d or more, or zb-v"
                            .formatted(ranks, 2 * ranks, microBatches, 2 * ranks));
        }
        return Pipeline.v(
                "dualpipe-v",
                shape,
                (rank, program) -> {
                    var order = new RisingMicroBatches(program, microBatches);
                    warmUp(order, ranks, rank);
                    steady(order, ranks, rank, microBatches);
                    coolDown(order, ranks, rank);
                });
    }

    /** Phases 1 to 3: until the first backward of the low chunk is due. */
    private static void warmUp(RisingMicroBatches order, int ranks, int rank) {
        for (int i = 0; i < 2 * (ranks - rank - 1); i++) {
            order.forward(LOW);
        }
        for (int i = 0; i < rank + 1; i++) {
            order.forward(LOW);
            order.forward(HIGH);
        }
        for (int i = 0; i < ranks - rank - 1; i++) {
            order.backwardInput(HIGH);
            order.oldestBackwardWeight();
            order.forward(HIGH);
        }
    }

    /** Phase 4: everything overlaps. */
    private static void steady(RisingMicroBatches order, int ranks, int rank, int microBatches) {
        for (int i = 0; i < microBatches - 2 * ranks + rank + 1; i++) {
            if (i == 0 && rank == ranks - 1) {
                // the ranks above wait for this backward alone: a pair would hold it up
                order.forward(LOW);
                order.backward(HIGH);
            } else {
                order.overlapped(LOW, HIGH);
            }
            order.overlapped(HIGH, LOW);
        }
    }

    /**
     * Phases 5 to 8: the forwards run out; late backwards are split, their weights fill the end.
     */
    private static void coolDown(RisingMicroBatches order, int ranks, int rank) {
        for (int i = 0; i < ranks - rank - 1; i++) {
            order.backward(HIGH);
            order.overlapped(HIGH, LOW);
        }
        for (int i = 0; i < 2 * (rank + 1); i++) {
            int chunk = i % 2 == 0 ? HIGH : LOW;
            if (i <= rank) {
                order.backward(chunk);
            } else {
                order.backwardInput(chunk);
            }
        }
        for (int i = 0; i < ranks - rank - 1; i++) {
            order.oldestBackwardWeight();
            order.backwardInput(LOW);
        }
        for (int i = 0; i < rank + 1; i++) {
            order.oldestBackwardWeight();
        }
    }
}
