package dev.penstock.actors.cluster;

/** How far a run of a cluster is. */
public enum RunState {
    /** For nodes with enough memory. */
    WAITING,
    /** Its nodes build their share. */
    OPENING,
    /** It has a supervisor. */
    RUNNING,
    /** A part of it died; see what it waits for. */
    RECOVERING,
    /** All steps done. */
    COMPLETED,
    /** Stopped on request. */
    STOPPED,
    /** See its reason. */
    FAILED;

    /** Whether it goes no further. */
    public boolean hasEnded() {
        return switch (this) {
            case WAITING, OPENING, RUNNING, RECOVERING -> false;
            case COMPLETED, STOPPED, FAILED -> true;
        };
    }
}
