package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.RunListener;
import java.util.List;

/**
 * In which processes the ranks of a run live: by rank, the lowest rank that lives in the same one.
 * Written by the listener's thread, read by any.
 */
final class PlacedRanks implements RunListener {
    private volatile List<Integer> atFirst;
    private volatile List<Integer> now;
    private boolean placed;

    /**
     * @param expected as long as they were not placed
     */
    PlacedRanks(List<Integer> expected) {
        atFirst = List.copyOf(expected);
        now = atFirst;
    }

    @Override
    public void onPlaced(List<Integer> homes) {
        now = List.copyOf(homes);
        if (!placed) {
            atFirst = now;
            placed = true;
        }
    }

    /** Before anybody died. */
    List<Integer> atFirst() {
        return atFirst;
    }

    /** After the last recovery, if there was any. */
    List<Integer> now() {
        return now;
    }
}
