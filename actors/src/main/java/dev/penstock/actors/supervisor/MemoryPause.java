package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.SharedMemoryFullException;
import java.time.Duration;

/**
 * How long a recovery waits before it tries again where shared memory was full. Whoever fills it
 * rarely makes room within seconds, and a run may have only so many recoveries: the four tries that
 * five leave after a death spread over 75 s.
 */
final class MemoryPause {
    private static final Duration FIRST = Duration.ofSeconds(5);
    private static final int MOST_DOUBLINGS = 3;

    private int failedTries;
    private long untilNanos;

    /** A recovery begins. */
    void begin(long now) {
        failedTries = 0;
        untilNanos = now;
    }

    boolean isOn(long now) {
        return now < untilNanos;
    }

    /** The moment of the next try, which may have passed. */
    long untilNanos() {
        return untilNanos;
    }

    /**
     * Whether a failure belongs to a try whose end is known: nothing is opened in a pause, but
     * several ranks fail in one try.
     */
    boolean knows(String cause, long now) {
        return isOn(now) && SharedMemoryFullException.isReasonOf(cause);
    }

    /**
     * The recovery starts over.
     *
     * @return whether it has to wait longer than it would have had to
     */
    boolean lengthen(String cause, long now) {
        if (isOn(now) || !SharedMemoryFullException.isReasonOf(cause)) {
            return false;
        }
        untilNanos = now + (FIRST.toNanos() << Math.min(failedTries, MOST_DOUBLINGS));
        failedTries++;
        return true;
    }
}
