package dev.penstock.runtime.events;

/**
 * Of which steps op times are kept: the first ones, then one in so many. Each time they have filled
 * their share of the disk, half as many: a log's size grows with the logarithm of the steps.
 * Thread-safe: the log is written by a thread of its own.
 */
final class OpTimesSampling {
    private static final int FIRST_STEPS = 3;
    private static final long SHARE_BYTES = 16L << 20;

    private long interval;
    private int seen;
    private long last = Long.MIN_VALUE;
    private long bytes;

    OpTimesSampling(int everySteps) {
        this.interval = everySteps;
    }

    synchronized boolean wants(long step) {
        seen++;
        boolean wanted = seen <= FIRST_STEPS || step < last || step - last >= interval;
        if (wanted) {
            last = step;
        }
        return wanted;
    }

    synchronized void wrote(long written) {
        bytes += written;
        if (bytes > SHARE_BYTES) {
            bytes = 0;
            interval *= 2;
        }
    }
}
