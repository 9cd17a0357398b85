package dev.penstock.actors.dataplane.aeron;

import org.agrona.collections.Int2IntCounterMap;

/** Sessions of which no good frame came, and how many bad ones did. Bounded. */
final class Strangers {
    /** One damaged frame may be an accident of a peer's first. */
    private static final int PATIENCE = 3;

    private static final int KNOWN = 64;

    private final Int2IntCounterMap badFrames = new Int2IntCounterMap(0);

    /** Counts a bad frame; whether the session is to be dropped, which is said once. */
    boolean isTooMany(int session) {
        if (badFrames.size() >= KNOWN) {
            badFrames.clear();
        }
        return badFrames.incrementAndGet(session) == PATIENCE;
    }
}
