package dev.penstock.actors.rank;

import dev.penstock.actors.serialization.WireMessage;

/** Where a rank takes its parameters and its optimizer's state from. */
public sealed interface StateSource extends WireMessage {
    /** From where the run itself began: random weights, given ones, or a resumed checkpoint. */
    record Fresh() implements StateSource {}

    /** From the run's checkpoint after this step. */
    record FromCheckpoint(long step) implements StateSource {}

    /**
     * From the mirror that a rank of the same process holds.
     *
     * @param step last one that the mirror has applied, or will have when a journalled commit is
     *     told again
     */
    record FromMirror(int holder, long step) implements StateSource {}

    /** It has them: a rank that outlived the death of another. */
    record Kept() implements StateSource {}
}
