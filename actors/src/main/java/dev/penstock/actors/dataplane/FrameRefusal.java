package dev.penstock.actors.dataplane;

/** Why a frame was not accepted. Refused frames are counted, dropped and change nothing else. */
public enum FrameRefusal {
    /** Shorter than a header, fragmented, or not of this protocol at all. */
    NOT_A_FRAME,
    /** Another version of the wire format. */
    VERSION,
    /** An unknown type, kind or flag, or reserved bytes in use. */
    UNKNOWN_VALUE,
    /** Of another run on the same host. */
    OTHER_RUN,
    /** Of an earlier or later epoch: the sender missed a recovery, or is ahead of it. */
    OTHER_EPOCH,
    /** A negative number where none can be. */
    NEGATIVE_FIELD,
    /** Sizes that contradict each other or the frame's own length. */
    BAD_LENGTH,
    /** No such channel here, or its frames come from another rank or session. */
    UNKNOWN_CHANNEL,
    /** The tensor is longer than the channel's slots. */
    LARGER_THAN_SLOT,
    /** Not the next chunk: one before it was lost or refused. */
    OUT_OF_ORDER,
    /** The chunk or the tensor already lies here. */
    DUPLICATE,
    /** More tensors than the channel has credits, or more credits back than tensors were sent. */
    CREDIT_EXCEEDED,
    /** The checksum or the seal does not fit the frame, or it has none where one is due. */
    CORRUPT
}
