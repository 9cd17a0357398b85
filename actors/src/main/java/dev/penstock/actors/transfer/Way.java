package dev.penstock.actors.transfer;

/** How the tensors of a channel go. */
public enum Way {
    /** From device to device. */
    DIRECT,
    /** As frames. */
    DATA_PLANE,
    /** Their receiver, a rank of this process, is not there yet. */
    NOT_KNOWN
}
