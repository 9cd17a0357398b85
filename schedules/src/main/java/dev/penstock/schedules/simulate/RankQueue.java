package dev.penstock.schedules.simulate;

import java.util.BitSet;

/** Ranks to look at, first come first served; a rank that is in the queue is not added again. */
final class RankQueue {
    private final int[] ring;
    private final BitSet queued;
    private int head;
    private int size;

    RankQueue(int ranks) {
        this.ring = new int[ranks];
        this.queued = new BitSet(ranks);
    }

    void add(int rank) {
        if (!queued.get(rank)) {
            queued.set(rank);
            int end = head + size;
            ring[end < ring.length ? end : end - ring.length] = rank;
            size++;
        }
    }

    boolean isEmpty() {
        return size == 0;
    }

    int remove() {
        int rank = ring[head];
        head = head + 1 < ring.length ? head + 1 : 0;
        size--;
        queued.clear(rank);
        return rank;
    }
}
