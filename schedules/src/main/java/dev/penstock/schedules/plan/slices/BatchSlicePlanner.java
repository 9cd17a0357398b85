package dev.penstock.schedules.plan.slices;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/**
 * Cuts batch and sequence together (TeraPipe, arXiv 2102.07988, section 3.3): token slices for
 * every batch-slice size b, then a knapsack over b1 + .. + bD = B.
 */
public final class BatchSlicePlanner {
    private BatchSlicePlanner() {}

    /**
     * The cut with the least sum of all slices and (K - 1) times the longest of all: for every
     * t_max, S*(L) of every b under that bound and the knapsack over these sums. The paper takes
     * the least sum of T_b instead, which counts the filling of the pipeline once for each batch
     * slice.
     *
     * @param costOf cost of a slice of b sequences, by b from 1 to {@code sequences}
     * @param sequences the batch, B
     */
    public static BatchSlicePlan plan(
            IntFunction<? extends SliceCost> costOf,
            int sequences,
            int tokens,
            int grid,
            int stages,
            long epsilonNanos) {
        List<SliceGrid> grids =
                IntStream.rangeClosed(1, sequences)
                        .mapToObj(b -> new SliceGrid(costOf.apply(b), tokens, grid))
                        .toList();
        long[] candidates =
                grids.stream()
                        .flatMapToLong(slices -> Arrays.stream(slices.candidates()))
                        .sorted()
                        .distinct()
                        .toArray();
        var bounds = new LongestSlices(candidates, epsilonNanos, stages);
        long floor = knapsackUnder(grids, Long.MAX_VALUE).value();
        long best = bounds.best(floor, bound -> knapsackUnder(grids, bound).value());
        var parts = new ArrayList<BatchSlicePlan.Part>();
        for (int b : knapsackUnder(grids, best).parts()) {
            SliceGrid slices = grids.get(b - 1);
            parts.add(
                    new BatchSlicePlan.Part(
                            b, SlicePlan.of(slices.slices(), costOf.apply(b), stages)));
        }
        return new BatchSlicePlan(parts, stages);
    }

    private static Knapsack knapsackUnder(List<SliceGrid> grids, long bound) {
        return new Knapsack(grids.stream().mapToLong(slices -> slices.solve(bound)).toArray());
    }

    /**
     * Parts of 1 to B with the sum B and the least sum of values; entry b - 1 is the value of b.
     */
    private static final class Knapsack {
        private final long[] least;
        private final int[] last;

        Knapsack(long[] values) {
            this.least = new long[values.length + 1];
            this.last = new int[values.length + 1];
            for (int total = 1; total <= values.length; total++) {
                least[total] = Long.MAX_VALUE;
                for (int b = total; b >= 1; b--) {
                    long sum = saturated(least[total - b], values[b - 1]);
                    if (sum < least[total]) {
                        least[total] = sum;
                        last[total] = b;
                    }
                }
            }
        }

        private static long saturated(long a, long b) {
            long sum = a + b;
            return sum < 0 ? Long.MAX_VALUE - 1 : sum;
        }

        long value() {
            return least[least.length - 1];
        }

        List<Integer> parts() {
            var parts = new ArrayList<Integer>();
            for (int rest = least.length - 1; rest > 0; rest -= last[rest]) {
                parts.add(last[rest]);
            }
            return parts;
        }
    }
}
