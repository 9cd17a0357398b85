package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;

/**
 * V-Min (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362,
 * sections 3.2, 3.3 and table 8): V placement with a third of the activations of 1F1B and two
 * thirds of its bubble.
 *
 * <p>A rank holds at most (ranks + 4) div 3 micro-batches, as the paper's. Where forward, backward
 * for the input and for the weights take equally long, 1 per chunk, the bubble is at most 4 x ranks
 * - 5; the paper's is about 4 x ranks, 1F1B's 6 x (ranks - 1). Where they do not, every micro-batch
 * adds to the bubble.
 *
 * <p>4 ranks, 3 micro-batches; capitals are the low chunk, small letters the high one:
 *
 * <pre>
 * rank 0 | F0 F1 F2             f0 i0 w0 f1 i1 w1       I0 W0       f2 i2 I1 w2 W1          I2 W2
 * rank 1 |    F0 F1          f0    f1 i0 w0 F2 i1 w1 I0 W0       f2    I1 i2 W1 w2       I2 W2
 * rank 2 |       F0 F1    f0    f1       i0 w0 F2 I0 i1 W0 w1 f2    I1 W1    i2 w2    I2 W2
 * rank 3 |          F0 f0 F1 f1             i0 I0 w0 F2 W0 f2 i1 I1 w1 W1       i2 I2 w2 W2
 * </pre>
 */
public final class VMin {
    private VMin() {}

    /**
     * The shortest order that was found for given costs; any number of ranks and micro-batches.
     *
     * @param costs entry r is rank r
     * @throws IllegalArgumentException for slices, or other than two chunks
     */
    public static Schedule schedule(PipelineShape shape, List<OpCosts> costs) {
        Requirements.wholeSequences("v-min", "seq1f1b", shape);
        int ranks = shape.ranks();
        // on 2, 3 and 5 ranks both kinds have the same limit, and the other block has less bubble
        return VShapedSearch.best(
                "v-min", shape, costs, limit(ranks), List.of(block(ranks), VHalf.block(ranks)));
    }

    /** The most chunks that a rank holds. */
    static int limit(int ranks) {
        return 2 * ((ranks + 4) / 3);
    }

    /**
     * The paper's table 8, but for a multiple of 3 ranks, where passes would meet: there these
     * wider turns cost a slot less than the paper's.
     */
    static VShapedBlock block(int ranks) {
        int turn = ranks % 3 == 0 ? 3 : 1;
        return new VShapedBlock(ranks, 1, turn, 1, 1, 1, turn, 1);
    }
}
