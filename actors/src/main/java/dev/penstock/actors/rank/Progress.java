package dev.penstock.actors.rank;

/** The result of trying to run the op at the program counter. */
enum Progress {
    /** The op is complete; the counter moved on. */
    DONE,
    /** A part of the op is done and more can be done now. */
    AGAIN,
    /** Its frame has not arrived; {@code onFrame} will report it. */
    WAITS_FOR_FRAME,
    /** The receiver has no free slot; {@code onCredit} will report one. */
    WAITS_FOR_CREDIT,
    /** A sum over replicas that it needs is not complete; try again soon. */
    WAITS_FOR_REPLICAS,
    /**
     * The log is full, the peer is not connected yet or the device is still copying; try again
     * soon.
     */
    WAITS_FOR_LINK
}
