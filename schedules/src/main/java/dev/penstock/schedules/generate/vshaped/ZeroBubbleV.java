package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.generate.base.RisingMicroBatches;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * ZB-V (Qi et al. 2023, arXiv 2401.10241, section 6): the model goes down the ranks and up again,
 * so that the rank with the first stage has the last one too and can turn round at once. With
 * forward, backward for the input and backward for the weights equally long, no rank idles between
 * its first and its last op, and none holds more than 1F1B's first rank: 2 x ranks chunks.
 *
 * <p>2 ranks, 4 micro-batches; capitals are the low chunk, small letters the high one:
 *
 * <pre>
 * rank 0 | F0 F1 F2 f0 i0 w0 f1 i1 w1 F3 I0 W0 f2 i2 w2 I1 W1 f3 i3 w3 I2 W2 I3 W3
 * rank 1 |    F0 f0 F1 f1 i0 w0 F2 I0 W0 f2 i1 w1 F3 I1 W1 f3 i2 w2 I2 i3 I3 W2 w3 W3
 * </pre>
 */
public final class ZeroBubbleV {
    private static final int LOW = 0;
    private static final int HIGH = 1;

    private ZeroBubbleV() {}

    /**
     * The order of every rank; any number of ranks and micro-batches. Fewer than 2 x ranks - 1
     * micro-batches take the order of that many and leave out what is too much.
     *
     * @throws IllegalArgumentException for slices, or other than two chunks
     */
    public static Schedule schedule(PipelineShape shape) {
        Requirements.wholeSequences("zb-v", "seq1f1b", shape);
        int ranks = shape.ranks();
        int microBatches = Math.max(shape.microBatches(), 2 * ranks - 1);
        return Pipeline.v(
                "zb-v",
                shape,
                (rank, program) -> {
                    var order = new RisingMicroBatches(program, shape.microBatches());
                    warmUp(order, ranks, rank);
                    steady(order, ranks, microBatches);
                    coolDown(order, ranks, rank);
                });
    }

    private static void warmUp(RisingMicroBatches order, int ranks, int rank) {
        for (int i = 0; i < 2 * (ranks - rank) - 1; i++) {
            order.forward(LOW);
        }
        for (int i = 0; i < rank; i++) {
            order.forward(HIGH);
            order.forward(LOW);
        }
        for (int i = 0; i < ranks - rank; i++) {
            forwardAndBackward(order, HIGH);
        }
    }

    private static void steady(RisingMicroBatches order, int ranks, int microBatches) {
        for (int i = ranks; i < microBatches; i++) {
            // the low chunk is ahead: its forwards beyond the last micro-batch are left out
            forwardAndBackward(order, LOW);
            forwardAndBackward(order, HIGH);
        }
    }

    private static void coolDown(RisingMicroBatches order, int ranks, int rank) {
        for (int i = 0; i < rank; i++) {
            order.backwardInput(LOW);
            order.backwardInput(HIGH);
        }
        for (int i = 0; i < ranks - rank; i++) {
            order.backwardInput(LOW);
            order.backwardWeight(LOW);
        }
        for (int i = 0; i < rank; i++) {
            order.backwardWeight(HIGH);
        }
        for (int i = 0; i < rank; i++) {
            order.backwardWeight(LOW);
        }
    }

    private static void forwardAndBackward(RisingMicroBatches order, int chunk) {
        order.forward(chunk);
        order.backwardInput(chunk);
        order.backwardWeight(chunk);
    }
}
