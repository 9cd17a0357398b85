package dev.penstock.actors.fault;

/** Remembers which events have happened, for all processes of a run and over their deaths. */
@FunctionalInterface
public interface FiredFaults {
    /**
     * Marks an event as happening now, durably before this returns.
     *
     * @param index of the fault in its plan
     * @return false if it has happened before, so that it must not happen again
     */
    boolean claim(int index, Fault fault);
}
