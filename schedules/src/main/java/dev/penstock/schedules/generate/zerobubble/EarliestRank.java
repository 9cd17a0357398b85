package dev.penstock.schedules.generate.zerobubble;

import java.util.Arrays;

/**
 * Whose turn is first: a knock-out tournament of the times of all ranks. Of equal times, the lower
 * rank wins.
 */
final class EarliestRank {
    /** Node i is the earlier of nodes 2i and 2i + 1; the ranks are the leaves. */
    private final long[] times;

    private final int leaves;

    /** All ranks start with a turn that never comes: {@link Long#MAX_VALUE}. */
    EarliestRank(int ranks) {
        leaves = Math.max(1, Integer.highestOneBit(2 * ranks - 1));
        times = new long[2 * leaves];
        Arrays.fill(times, Long.MAX_VALUE);
    }

    void set(int rank, long time) {
        int node = leaves + rank;
        times[node] = time;
        while (node > 1) {
            node /= 2;
            times[node] = Math.min(times[2 * node], times[2 * node + 1]);
        }
    }

    /** The time of the first turn. */
    long time() {
        return times[1];
    }

    int rank() {
        int node = 1;
        while (node < leaves) {
            node = times[2 * node] <= times[2 * node + 1] ? 2 * node : 2 * node + 1;
        }
        return node - leaves;
    }
}
