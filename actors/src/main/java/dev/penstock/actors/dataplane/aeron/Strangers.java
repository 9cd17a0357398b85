package dev.penstock.actors.dataplane.aeron;

import org.agrona.collections.Int2IntCounterMap;

/**
 * Sessions of which no good frame came: how many bad ones did, and how often a key is derived to
 * find that out. Both are bounded, whatever is sent.
 */
final class Strangers {
    /** As many sessions as a large run has, at once. */
    private static final int MOST_KEYS = 512;

    private static final long NANOS_PER_KEY = 10_000_000;

    /** One damaged frame may be an accident of a peer's first. */
    private static final int PATIENCE = 3;

    private static final int KNOWN = 64;

    private final Int2IntCounterMap badFrames = new Int2IntCounterMap(0);
    private int keys = MOST_KEYS;
    private long countedNanos;

    Strangers(long now) {
        countedNanos = now;
    }

    /**
     * Whether a key may be derived for a session that has none; a hundred a second in the long run.
     * The frame of an honest peer that is turned away is sent again.
     */
    boolean mayDeriveKey(long now) {
        long earned = (now - countedNanos) / NANOS_PER_KEY;
        if (earned > 0) {
            keys = (int) Math.min(MOST_KEYS, keys + earned);
            countedNanos += earned * NANOS_PER_KEY;
        }
        if (keys == 0) {
            return false;
        }
        keys--;
        return true;
    }

    /** Counts a bad frame; whether the session is to be dropped, which is said once. */
    boolean isTooMany(int session) {
        if (badFrames.size() >= KNOWN) {
            badFrames.clear();
        }
        return badFrames.incrementAndGet(session) == PATIENCE;
    }
}
