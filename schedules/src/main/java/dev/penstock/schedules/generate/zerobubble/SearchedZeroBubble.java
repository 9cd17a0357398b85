package dev.penstock.schedules.generate.zerobubble;

import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * ZB-1p and ZB-2p (Zero Bubble Pipeline Parallelism, Qi et al. 2023, section 3): the order with
 * split backwards that is best for given costs and memory. ZB-1p may hold as much as 1F1B does, one
 * micro-batch per rank of the pipeline, ZB-2p twice that.
 *
 * <p>ZB-1p for 3 ranks and 6 micro-batches where a tensor is under way for as long as an op takes
 * (ZB-H1 needs 29):
 *
 * <pre>
 * rank 0 | F0 F1 F2                   I0 W0 F3 I1 W1 F4 I2 W2 F5       I3 W3    I4 W4    I5 W5
 * rank 1 |       F0 F1 F2       I0 W0 I1 W1 I2 W2 F3       F4    I3 F5 W3 I4 W4    I5 W5
 * rank 2 |             F0 I0 F1 I1 F2 I2 W0 W1 W2       F3 I3 W3 F4 I4 W4 F5 I5 W5
 * </pre>
 *
 * <p>Deterministic: the same shape, costs and limit give the same order. The order is the best of
 * ZB-H1, ZB-H2 and those of {@link SplitGreedy} under many choices; for very few micro-batches it
 * is the best of all.
 */
public final class SearchedZeroBubble {
    private SearchedZeroBubble() {}

    /**
     * At most as many micro-batches as ranks, or as the options say.
     *
     * @param options the costs and, if given, another limit
     * @throws IllegalArgumentException for chunks or slices, costs of another number of ranks, or a
     *     limit of less than one micro-batch
     */
    public static Schedule onePerRank(PipelineShape shape, GenerateOptions options) {
        return search("zb-1p", 1, shape, options);
    }

    /** Same as {@link #onePerRank} with twice its limit. */
    public static Schedule twoPerRank(PipelineShape shape, GenerateOptions options) {
        return search("zb-2p", 2, shape, options);
    }

    private static Schedule search(
            String name, int perRank, PipelineShape shape, GenerateOptions options) {
        Requirements.chunks(name, 1, shape);
        Requirements.wholeSequences(name, "zb-h1", shape);
        double limit = options.memoryLimit().orElse(perRank * shape.ranks());
        if (limit < 1) {
            throw new IllegalArgumentException(
                    "%s needs room for at least 1 micro-batch, got a limit of %s; try %d"
                            .formatted(name, limit, perRank * shape.ranks()));
        }
        var problem =
                new SplitProblem(shape.microBatches(), (int) limit, options.costsOf(shape.ranks()));
        return ZeroBubbleSearch.best(problem).schedule(name, shape);
    }
}
