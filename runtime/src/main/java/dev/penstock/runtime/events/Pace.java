package dev.penstock.runtime.events;

/**
 * When lines are due that repeat themselves: every few seconds, and half as often each time they
 * have filled their share of the disk, so that a log's size grows with the logarithm of the time.
 * Thread-safe: the log is written by a thread of its own.
 */
final class Pace {
    private static final long FIRST_INTERVAL_MS = 2_000;
    private static final long SHARE_BYTES = 4L << 20;

    private long intervalMs = FIRST_INTERVAL_MS;
    private long lastMs = Long.MIN_VALUE / 2;
    private long bytes;

    synchronized boolean isDue(long nowMs) {
        return nowMs - lastMs >= intervalMs;
    }

    synchronized void told(long nowMs) {
        lastMs = nowMs;
    }

    synchronized void wrote(long written) {
        bytes += written;
        if (bytes > SHARE_BYTES) {
            bytes = 0;
            intervalMs *= 2;
        }
    }
}
