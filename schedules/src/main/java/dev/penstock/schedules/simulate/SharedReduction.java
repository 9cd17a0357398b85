package dev.penstock.schedules.simulate;

import java.util.BitSet;
import java.util.List;

/** The reduction of one shared group: nobody leaves before everybody has come. */
final class SharedReduction {
    /** Somebody is still missing. */
    static final long NOT_YET = -1;

    private final List<Integer> stages;
    private final List<Integer> ranks;
    private final BitSet missingRanks = new BitSet();
    private long latest;

    /**
     * @param stages the group
     * @param ranks the ranks that hold them
     */
    SharedReduction(List<Integer> stages, List<Integer> ranks) {
        this.stages = stages;
        this.ranks = ranks;
        ranks.forEach(missingRanks::set);
    }

    List<Integer> stages() {
        return stages;
    }

    List<Integer> ranks() {
        return ranks;
    }

    /** A rank reaches the reduction. Returns when everybody had come, if so. */
    long arrive(int rank, long time) {
        if (missingRanks.get(rank)) {
            missingRanks.clear(rank);
            latest = Math.max(latest, time);
        }
        return missingRanks.isEmpty() ? latest : NOT_YET;
    }

    boolean misses(int rank) {
        return missingRanks.get(rank);
    }
}
