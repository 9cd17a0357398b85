package dev.penstock.schedules.plan.slices;

/**
 * TeraPipe's dynamic programme (Li et al. 2021, arXiv 2102.07988, section 3.3): the token slices
 * with the least makespan on K equal stages,
 *
 * <pre>T* = min over slicings of [ sum of t_i + (K - 1) max of t_j ]</pre>
 *
 * by solving, for every possible cost t_max of the longest slice, the recurrence of {@link
 * SliceGrid#solve}. Two cuts: stop when (K - 1) t_max and the least sum of all exceed the best, and
 * let candidates that are closer than epsilon stand for each other. O(n^2) per candidate, n points
 * on the grid.
 */
public final class SlicePlanner {
    /** The paper's: a tenth of a millisecond. */
    public static final long PAPER_EPSILON_NANOS = 100_000;

    private SlicePlanner() {}

    /**
     * The best slices of a sequence whose ends lie on the grid, for micro-batches that follow each
     * other without a gap and are all cut alike: least {@code microBatches * sum + (K - 1) *
     * longest}. The more there are, the less filling the pipeline costs, and the longer the slices.
     *
     * @param sequence tokens, a multiple of {@code grid}
     * @param stages of the pipeline, K
     * @param epsilonNanos 0: the optimum; else at most {@code (stages - 1) * epsilonNanos} above it
     * @throws IllegalArgumentException for sizes that make no sense or negative costs
     */
    public static SlicePlan plan(
            SliceCost cost,
            int sequence,
            int grid,
            int stages,
            int microBatches,
            long epsilonNanos) {
        if (microBatches < 1) {
            throw new IllegalArgumentException(
                    "expected 1 micro-batch or more, got " + microBatches);
        }
        var slices = new SliceGrid(cost, sequence, grid);
        var bounds = new LongestSlices(slices.candidates(), epsilonNanos, stages);
        long floor = microBatches * slices.solve(Long.MAX_VALUE);
        slices.solve(
                bounds.best(
                        floor,
                        bound -> {
                            long sum = slices.solve(bound);
                            return SliceGrid.isReachable(sum) ? microBatches * sum : sum;
                        }));
        return SlicePlan.of(slices.slices(), cost, stages);
    }
}
