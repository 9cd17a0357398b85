package dev.penstock.actors.rank;

/** What came of a try to run the op at the program counter. */
enum Progress {
    /** The op is complete; the counter moved on. */
    DONE,
    /** A part of the op is done and more can be done now. */
    AGAIN,
    /** Its frame has not arrived; {@code onFrame} will tell. */
    WAITS_FOR_FRAME,
    /** The receiver has no free slot; {@code onCredit} will tell. */
    WAITS_FOR_CREDIT,
    /** A sum over replicas that it needs is not complete; try again soon. */
    WAITS_FOR_REPLICAS,
    /** The log is full, the peer not there yet or the device still copying; try again soon. */
    WAITS_FOR_LINK
}
