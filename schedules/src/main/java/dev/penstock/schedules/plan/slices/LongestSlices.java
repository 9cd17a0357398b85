package dev.penstock.schedules.plan.slices;

/**
 * Goes through the bounds on the longest slice, t_max, rising, and stops when no larger one can
 * win.
 */
final class LongestSlices {
    /** The least sum of costs under a bound, or a number above all others. */
    interface LeastSum {
        long under(long longest);
    }

    private final long[] candidates;
    private final long epsilon;
    private final int stages;

    /**
     * @param candidates rising
     * @param epsilon candidates that are at most this much apart stand for each other; the result
     *     is at most {@code (stages - 1) * epsilon} above the optimum
     */
    LongestSlices(long[] candidates, long epsilon, int stages) {
        if (epsilon < 0 || stages < 1) {
            throw new IllegalArgumentException(
                    "expected 1 stage or more and an epsilon of 0 ns or more, got %d and %d"
                            .formatted(stages, epsilon));
        }
        this.candidates = candidates;
        this.epsilon = epsilon;
        this.stages = stages;
    }

    /**
     * The bound with the least {@code sum + (K - 1) bound}.
     *
     * @param floor no sum under any bound is below it
     */
    long best(long floor, LeastSum leastSum) {
        long best = Long.MAX_VALUE;
        long bestBound = candidates[candidates.length - 1];
        for (int i = 0; i < candidates.length; i++) {
            if (best != Long.MAX_VALUE && floor + (stages - 1) * candidates[i] >= best) {
                break;
            }
            // the largest of those that are close: it allows what the others allow
            long last = candidates[i] + epsilon;
            while (i + 1 < candidates.length && candidates[i + 1] <= last) {
                i++;
            }
            long sum = leastSum.under(candidates[i]);
            if (SliceGrid.isReachable(sum) && sum + (stages - 1) * candidates[i] < best) {
                best = sum + (stages - 1) * candidates[i];
                bestBound = candidates[i];
            }
        }
        return bestBound;
    }
}
