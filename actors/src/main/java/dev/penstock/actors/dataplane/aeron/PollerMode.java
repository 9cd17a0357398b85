package dev.penstock.actors.dataplane.aeron;

/** How the poller waits while nothing arrives. */
public enum PollerMode {
    /**
     * Spins for microseconds, then parks for a sixteenth of the time it has waited already, 50 us
     * to 1 ms; a sender in this process wakes it at once. Costs about a hundredth of a core when
     * idle.
     */
    ADAPTIVE,
    /** Parks 1 ms at a time; a sender in this process wakes it at once. */
    SLEEPING,
    /** Never gives its core away. For machines with a core to spare. */
    SPINNING
}
