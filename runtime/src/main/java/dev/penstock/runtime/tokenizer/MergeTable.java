package dev.penstock.runtime.tokenizer;

import java.util.Arrays;

/**
 * Which pairs of tokens become one, which of them first, and what they become. An open hash table
 * of primitive values: it is asked for every pair of every word.
 */
final class MergeTable {
    /** The rank of a pair that is not merged. */
    static final int NONE = Integer.MAX_VALUE;

    private static final long EMPTY = -1;

    private final long[] pairs;
    private final int[] ranks;
    private final int[] merged;
    private final int mask;

    /**
     * @param count how many merges there will be
     */
    MergeTable(int count) {
        int size = Math.max(16, Integer.highestOneBit(Math.max(1, count)) << 2);
        pairs = new long[size];
        Arrays.fill(pairs, EMPTY);
        ranks = new int[size];
        merged = new int[size];
        mask = size - 1;
    }

    /** Adds a merge; a pair that is there already gets this rank and result. */
    void put(int left, int right, int rank, int result) {
        int slot = slot(left, right);
        pairs[slot] = pair(left, right);
        ranks[slot] = rank;
        merged[slot] = result;
    }

    /** Returns how early this pair is merged, 0 first; {@link #NONE} if it is not. */
    int rank(int left, int right) {
        int slot = slot(left, right);
        return pairs[slot] == EMPTY ? NONE : ranks[slot];
    }

    /** Returns what this pair, which has a rank, becomes. */
    int merged(int left, int right) {
        return merged[slot(left, right)];
    }

    private static long pair(int left, int right) {
        return (long) left << 32 | right;
    }

    private int slot(int left, int right) {
        long pair = pair(left, right);
        long mixed = pair * 0x9e3779b97f4a7c15L;
        int slot = (int) (mixed >>> 32) & mask;
        while (pairs[slot] != EMPTY && pairs[slot] != pair) {
            slot = (slot + 1) & mask;
        }
        return slot;
    }
}
