package dev.penstock.schedules.generate.vshaped;

/**
 * Dense numbers for the (rank, pass, micro-batch) of V placement, and who gives whom what it needs.
 */
record VUnits(int ranks, int microBatches) {
    static final int NONE = -1;
    private static final int PASSES = VPass.values().length;

    int perRank() {
        return PASSES * microBatches;
    }

    int index(int rank, VPass pass, int microBatch) {
        return rank * perRank() + pass.index() * microBatches + microBatch;
    }

    int rank(int index) {
        return index / perRank();
    }

    VPass pass(int index) {
        return VPass.of(index % perRank() / microBatches);
    }

    int microBatch(int index) {
        return index % microBatches;
    }

    /**
     * What must end before this can start, on the same or a neighbouring rank, or {@link #NONE}.
     */
    int giver(int index) {
        VPass pass = pass(index);
        int rank = rank(index);
        if (pass.isWeight()) {
            return index - 2 * microBatches;
        }
        int from = pass.goesDown() ? rank - 1 : rank + 1;
        if (from >= 0 && from < ranks) {
            return index + (from - rank) * perRank();
        }
        return pass == VPass.FORWARD_LOW ? NONE : index - microBatches;
    }

    /** Whose giver this is on another rank, or {@link #NONE}. */
    int takerElsewhere(int index) {
        VPass pass = pass(index);
        int rank = rank(index);
        int to = pass.goesDown() ? rank + 1 : rank - 1;
        boolean travels = !pass.isWeight() && to >= 0 && to < ranks;
        return travels ? index + (to - rank) * perRank() : NONE;
    }
}
