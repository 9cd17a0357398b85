package dev.penstock.actors.fault;

/**
 * A moment of a rank's step that is no op of its program, in their order:
 *
 * <pre>
 *   ops, GATHERING and REDUCING among them | READY | (commit) OPTIMIZER | UPDATED | .. CHECKPOINT | SAVED
 * </pre>
 */
public enum StepMoment {
    /** A gather of parameters has begun here; others may have parts to send or to take. */
    GATHERING,
    /** A sum of gradients has begun here; others may have addends to send or sums to take. */
    REDUCING,
    /** The gradients are complete and the supervisor does not know it yet. */
    READY,
    /** The step is committed and nothing of it is applied here. */
    OPTIMIZER,
    /** The step is applied here and the supervisor does not know it yet. */
    UPDATED,
    /** The rank's part of a checkpoint is to be written, nothing of it is. */
    CHECKPOINT,
    /** The rank's part of a checkpoint is on disk and the supervisor does not know it yet. */
    SAVED
}
