package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.TensorFrame;
import java.lang.foreign.MemorySegment;
import org.agrona.DirectBuffer;

/**
 * What frames of a link look like on the wire: as they are, with a checksum, or sealed. One per
 * link and direction, used by one thread at a time.
 */
interface FrameForm {
    /** Whether damage is found, so that the sender has to keep tensors until it is excluded. */
    boolean checks();

    /**
     * Completes a frame whose header is written but for checksum and seal.
     *
     * @param at where the frame is in the log
     * @param chunk of the tensor, 0 for a frame without payload
     * @param position of the frame's end in the stream, which no other frame has
     */
    void complete(
            TensorFrame header,
            DirectBuffer log,
            int at,
            MemorySegment tensor,
            long offset,
            int chunk,
            long position);

    /** Whether a frame whose header passed its check arrived as it was sent. */
    boolean isIntact(TensorFrame header, DirectBuffer log, int at, int length, long position);

    /** Where the payload of the frame that was found intact last lies, until the next is judged. */
    MemorySegment payload();

    /** Where in {@link #payload} it begins. */
    long payloadAt();
}
