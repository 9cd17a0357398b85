package dev.penstock.actors.rank;

import dev.penstock.actors.serialization.WireMessage;

/** The source of a rank's parameters and optimizer state. */
public sealed interface StateSource extends WireMessage {
    /**
     * The start of the run itself: random weights, given weights, or a checkpoint that it resumed.
     */
    record Fresh() implements StateSource {}

    /** The run's checkpoint after this step. */
    record FromCheckpoint(long step) implements StateSource {}

    /**
     * The mirror that a rank of the same process holds.
     *
     * @param step the last step that the mirror has applied, or will have when a journalled commit
     *     is repeated
     */
    record FromMirror(int holder, long step) implements StateSource {}

    /** The rank has its state: it survived the death of another. */
    record Kept() implements StateSource {}
}
