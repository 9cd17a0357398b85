package dev.penstock.actors.dataplane;

import java.lang.foreign.MemorySegment;

/**
 * A rank's place in the data plane. {@link #offer}, {@link #take} and {@link #release} are called
 * from the rank's own thread only.
 */
public interface Endpoint extends AutoCloseable {
    /**
     * Moves a tensor towards its receiver. Resumable: after {@link OfferResult.BackPressured} the
     * same tensor is offered again and goes on where it stopped. One tensor at a time per channel.
     *
     * @param tensor whole frame's payload, at most as long as the receiver's slots
     */
    OfferResult offer(FrameKey key, MemorySegment tensor);

    /** Credits left on an outbound channel. */
    int credits(ChannelKey channel);

    /**
     * Takes an arrived tensor and gives the sender one credit back; the caller holds the slot until
     * {@link #release}.
     *
     * @return index of the slot in {@link Inbound#slots}, or -1 if the tensor has not arrived
     *     completely
     */
    int take(FrameKey key);

    /** Gives a slot back for later arrivals. */
    void release(ChannelKey channel, int slot);

    /** What lies here and what is missing, for stall reports: one line per channel. */
    String describe();

    @Override
    void close();
}
