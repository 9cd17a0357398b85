package dev.penstock.actors.dataplane;

/** What a frame carries. The wire uses the ordinal: append only. */
public enum FrameKind {
    /** A stage's input, travelling to a later stage. */
    ACTIVATION,
    /** The gradient of a stage's output, travelling to an earlier stage. */
    GRADIENT,
    /**
     * A part of a gradient whose parameter both stages hold; the slice field carries the sender.
     */
    SHARED_GRADIENT,
    /**
     * A block of what a rank's mirror keeps equal: both stage fields carry the rank; the
     * micro-batch field carries the block, the slice field what it is a part of.
     */
    MIRROR,
    /**
     * A block of what members of a group sum or gather: the stage fields carry ranks, counted once
     * for each role of a group; the step field the number of the collective, the micro-batch field
     * whether it goes to be summed (0) or is a sum (1), the slice field the block.
     */
    COLLECTIVE
}
