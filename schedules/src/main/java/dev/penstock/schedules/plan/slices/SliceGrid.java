package dev.penstock.schedules.plan.slices;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * Costs of all slices whose ends lie on a grid, and the cheapest slicing under a bound on the
 * longest slice. A point is a multiple of the grid.
 */
final class SliceGrid {
    private static final long UNREACHABLE = Long.MAX_VALUE / 4;

    private final int points;
    private final int grid;

    /** Entry [i][k]: cost of the slice of k points that ends at point i. */
    private final long[][] costs;

    /** Entry i: least time of slices that end at point i, S*(i). */
    private final long[] least;

    /** Entry i: points of the last of these slices. */
    private final int[] lastSlice;

    SliceGrid(SliceCost cost, int sequence, int grid) {
        if (sequence < 1 || grid < 1 || sequence % grid != 0) {
            throw new IllegalArgumentException(
                    "the sequence must be a multiple of the grid, got %d tokens and a grid of %d"
                            .formatted(sequence, grid));
        }
        this.points = sequence / grid;
        this.grid = grid;
        this.costs = new long[points + 1][];
        for (int i = 0; i <= points; i++) {
            costs[i] = new long[i + 1];
            for (int k = 1; k <= i; k++) {
                costs[i][k] = cost.nanos(k * grid, (i - k) * grid);
                if (costs[i][k] < 0 || costs[i][k] > UNREACHABLE / (points + 1)) {
                    throw new IllegalArgumentException(
                            "a slice must cost 0 or more nanoseconds, got %d for %d tokens after %d"
                                    .formatted(costs[i][k], k * grid, (i - k) * grid));
                }
            }
        }
        this.least = new long[points + 1];
        this.lastSlice = new int[points + 1];
    }

    /** The different costs of slices, rising: what the longest slice of a slicing can cost. */
    long[] candidates() {
        return Arrays.stream(costs)
                .flatMapToLong(row -> Arrays.stream(row).skip(1))
                .sorted()
                .distinct()
                .toArray();
    }

    /**
     * Least sum of costs with no slice above {@code most}:
     *
     * <pre>S*(i) = min over k of { S*(i-k) + t(k, i-k) : t(k, i-k) <= most }</pre>
     *
     * @return S*(L), or {@link #isReachable unreachable}
     */
    long solve(long most) {
        for (int i = 1; i <= points; i++) {
            long best = UNREACHABLE;
            int bestSlice = 0;
            long[] row = costs[i];
            for (int k = i; k >= 1; k--) {
                long sum = least[i - k] + row[k];
                if (sum < best && row[k] <= most) {
                    best = sum;
                    bestSlice = k;
                }
            }
            least[i] = best;
            lastSlice[i] = bestSlice;
        }
        return least[points];
    }

    static boolean isReachable(long sum) {
        return sum < UNREACHABLE;
    }

    /** The slicing that the last {@link #solve} found, in tokens. */
    List<Integer> slices() {
        var lengths = new ArrayList<Integer>();
        for (int i = points; i > 0; i -= lastSlice[i]) {
            lengths.add(lastSlice[i] * grid);
        }
        Collections.reverse(lengths);
        return lengths;
    }
}
