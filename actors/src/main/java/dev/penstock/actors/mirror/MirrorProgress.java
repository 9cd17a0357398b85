package dev.penstock.actors.mirror;

/** What came of a try to move mirrored tensors. */
public enum MirrorProgress {
    /** Everything is sent and everything has arrived. */
    DONE,
    /** A part moved, and more may move now. */
    MOVED,
    /** A block or a credit has to come first; the frame listener will tell. */
    WAITS_FOR_PEER,
    /** The log is full or the peer not there yet; try again soon. */
    WAITS_FOR_LINK
}
