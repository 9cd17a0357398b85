package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Decides which ranks go to a node that introduces itself: the one it was started for, or all that
 * are still free.
 */
final class Placer {
    private final int ranks;
    private final BitSet taken = new BitSet();

    Placer(int ranks) {
        this.ranks = ranks;
    }

    List<Integer> place(NodeInfo node) {
        List<Integer> placed = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            if (!taken.get(rank) && (node.rank().isEmpty() || node.rank().get() == rank)) {
                taken.set(rank);
                placed.add(rank);
            }
        }
        return placed;
    }
}
