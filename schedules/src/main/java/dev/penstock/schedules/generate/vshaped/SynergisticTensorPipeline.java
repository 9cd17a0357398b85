package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.generate.base.RisingMicroBatches;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * Synergistic tensor and pipeline parallelism (STP; Qi et al. 2025, arXiv 2510.27257): the model
 * goes down the ranks and up again, and from the end of the warm-up on nearly every computation
 * runs beside another one, so that the sums over tensor shards of each hide behind the other.
 *
 * <p>With AR for the sums of a forward, F, B and W for the computations of a unit, p ranks and m
 * micro-batches: the sums of the first rank stand alone for (2p + 1) x AR, and it waits for (p - 1)
 * x (F + AR + B - W), one AR less if p is even, for then the last rank begins with pairs alone. It
 * holds 3p chunks and the one that its pair begins; rank r holds 3p + r, for it puts off the
 * weights of r more.
 *
 * <p>With fewer than 3p - 1 micro-batches it is the order of so many without those that are not
 * there.
 *
 * <p>2 ranks, 5 micro-batches; capitals are the low chunk, small letters the high one, + is a pair:
 *
 * <pre>
 * rank 0 | F0 F1 F2 f0 F3 f1+i0 F4+w0    f2+b1    B0    f3+i2 B1    f4+i3 B2    b4    B3    w2 w3 B4
 * rank 1 |    F0 f0 F1 f1 F2+F3 f2+b0    F4+B0    f3+i1 B1    f4+i2 B2    b3    B3    b4    B4    w1 w2
 * </pre>
 */
public final class SynergisticTensorPipeline {
    private static final int LOW = 0;
    private static final int HIGH = 1;

    private SynergisticTensorPipeline() {}

    /**
     * The order of every rank.
     *
     * @throws IllegalArgumentException for slices, or other than two chunks
     */
    public static Schedule schedule(PipelineShape shape) {
        Requirements.wholeSequences("stp", "seq1f1b", shape);
        int ranks = shape.ranks();
        int microBatches = shape.microBatches();
        int least = 3 * ranks - 1; // of fewer, what an order for so many has of them
        return Pipeline.v(
                "stp",
                shape,
                (rank, program) -> {
                    var order = new RisingMicroBatches(program, microBatches);
                    warmUp(order, ranks, rank);
                    steady(order, rank, Math.max(0, microBatches - least));
                    coolDown(order, ranks, rank);
                });
    }

    /** Until the first backward of the low chunk is due. */
    private static void warmUp(RisingMicroBatches order, int ranks, int rank) {
        for (int i = 0; i < 2 * (ranks - rank - 1); i++) {
            order.forward(LOW);
        }
        for (int i = 0; i < rank + 1; i++) {
            order.forward(LOW);
            order.forward(HIGH);
        }
        if (rank % 2 == 0) {
            order.forward(LOW);
        }
        for (int i = 0; i < (rank + 1) / 2; i++) {
            order.overlappedForwards(LOW);
        }
        for (int i = 0; i < ranks - rank - 1; i++) {
            order.overlappedInput(HIGH);
            order.overlappedWeight(LOW);
        }
    }

    /**
     * A forward beside a backward of its own chunk; the last ones leave their weights for the end.
     */
    private static void steady(RisingMicroBatches order, int rank, int beyondLeast) {
        int whole = 2 * beyondLeast + 1 + rank;
        for (int i = 0; i < whole + rank; i++) {
            int chunk = i % 2 == 0 ? HIGH : LOW;
            if (i < whole) {
                order.overlapped(chunk, chunk);
            } else {
                order.overlappedInput(chunk);
            }
        }
    }

    /** The forwards of the low chunk have run out, then those of the high one. */
    private static void coolDown(RisingMicroBatches order, int ranks, int rank) {
        for (int i = 0; i < 2 * ranks - 2 - rank; i++) {
            order.backward(LOW);
            order.overlappedInput(HIGH);
        }
        for (int i = 0; i < rank + 1; i++) {
            order.backward(LOW);
            order.backward(HIGH);
        }
        for (int i = 0; i < ranks - rank - 1; i++) {
            order.backward(LOW);
            order.oldestBackwardWeight();
            order.oldestBackwardWeight();
        }
        order.backward(LOW);
        for (int i = 0; i < 2 * rank; i++) {
            order.oldestBackwardWeight();
        }
    }
}
