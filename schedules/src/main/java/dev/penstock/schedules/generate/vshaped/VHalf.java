package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;

/**
 * V-Half (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362,
 * section 3.2 and table 9): V placement with half the activations of 1F1B and half its bubble.
 *
 * <p>A rank holds at most (ranks + 2) div 2 micro-batches, as the paper's. Where forward, backward
 * for the input and for the weights take equally long, 1 per chunk, and there are as many
 * micro-batches as ranks, the bubble is 3 x ranks - 7 for an even number of ranks from 4 on and 3 x
 * ranks - 4 for an odd one from 3 on; the paper's is about 3 x ranks, 1F1B's 6 x (ranks - 1).
 *
 * <p>4 ranks, 4 micro-batches; capitals are the low chunk, small letters the high one:
 *
 * <pre>
 * rank 0 | F0 F1 F2 F3          f0 i0 f1 i1 w0 f2 i2 w1 I0 w2 W0    f3 i3 I1 w3 I2 W1 W2    I3 W3
 * rank 1 |    F0 F1 F2 F3    f0    f1 i0 w0 f2 i1 w1 I0 i2 W0 w2 f3    I1 i3 I2 W1 w3 W2 I3 W3
 * rank 2 |       F0 F1 F2 f0    f1    f2 i0 w0 F3 I0 i1 W0 w1 f3 i2 I1 w2 I2 i3 W1 W2 I3 w3 W3
 * rank 3 |          F0 f0 F1 f1 F2 f2       i0 I0 w0 F3 W0 f3 i1 I1 i2 I2 w1 W1 i3 I3 w2 W2 w3 W3
 * </pre>
 */
public final class VHalf {
    private VHalf() {}

    /**
     * The shortest order that was found for given costs; any number of ranks and micro-batches.
     *
     * @param costs entry r is rank r
     * @throws IllegalArgumentException for slices, or other than two chunks
     */
    public static Schedule schedule(PipelineShape shape, List<OpCosts> costs) {
        Requirements.wholeSequences("v-half", "seq1f1b", shape);
        return VShapedSearch.best(
                "v-half", shape, costs, limit(shape.ranks()), List.of(block(shape.ranks())));
    }

    /** The most chunks that a rank holds. */
    static int limit(int ranks) {
        return 2 * ((ranks + 2) / 2);
    }

    /** The paper's table 9; for an even number of ranks a wider turn keeps passes apart. */
    static VShapedBlock block(int ranks) {
        int turnAtFirst = ranks % 2 == 0 ? 4 : 1;
        return new VShapedBlock(ranks, 2, 2, 1, turnAtFirst, 2, 1, 1);
    }
}
