package dev.penstock.actors.spi;

import java.util.List;

/**
 * What the operating system reports of a process at one moment.
 *
 * @param startedAt distinguishes the process from a later one with the same pid
 */
public record VitalSigns(long startedAt, State state, List<ThreadSigns> threads) {
    /** Whether the process would run if it were given a processor. */
    public enum State {
        /** It runs, waits for a processor, or waits for work. */
        ALIVE,
        /** Stopped by a signal or a debugger. */
        STOPPED,
        /** It has ended, and its parent has not asked for its exit code yet. */
        ENDED
    }

    /**
     * The signs of one thread.
     *
     * @param wantsToRun whether it runs, or would run but for a processor or the disk
     * @param ranNanos time on processors, over its whole life
     * @param waitedNanos time spent waiting for processors, over its whole life; a wait counts when
     *     it is over
     * @param turns how often it was given a processor
     */
    public record ThreadSigns(
            long id, boolean wantsToRun, long ranNanos, long waitedNanos, long turns) {}

    public VitalSigns {
        threads = List.copyOf(threads);
    }
}
