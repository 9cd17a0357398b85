package dev.penstock.actors.spi;

import java.util.List;

/**
 * What the operating system says of a process at one moment.
 *
 * @param startedAt tells the process from a later one with the same pid
 */
public record VitalSigns(long startedAt, State state, List<ThreadSigns> threads) {
    /** Whether the process would run if it were given a processor. */
    public enum State {
        /** It runs, waits for a processor, or waits for something to do. */
        ALIVE,
        /** Stopped by a signal or a debugger. */
        STOPPED,
        /** Its parent has not asked for its exit code yet. */
        ENDED
    }

    /**
     * One thread.
     *
     * @param wantsToRun whether it runs, or would but for a processor or the disk
     * @param ranNanos on processors, in all its life
     * @param waitedNanos for processors, in all its life; a wait counts when it is over
     * @param turns how often it was given a processor
     */
    public record ThreadSigns(
            long id, boolean wantsToRun, long ranNanos, long waitedNanos, long turns) {}

    public VitalSigns {
        threads = List.copyOf(threads);
    }
}
