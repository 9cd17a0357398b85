package dev.penstock.actors.dataplane.direct;

/** How the tensors of a channel go. */
public enum TransferPath {
    /** From device to device. */
    DIRECT,
    /** As frames. */
    DATA_PLANE,
    /** Their receiver, a rank of this process, is not there yet. */
    NOT_KNOWN
}
