package dev.penstock.actors.dataplane;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;

/**
 * A rank's place in the data plane. {@link #offer}, {@link #arrived}, {@link #take} and {@link
 * #release} are called from the rank's own thread only; the others from any. A channel or slot that
 * was not opened here, or a slot released twice, is a {@link DataPlaneException}.
 */
public interface Endpoint extends AutoCloseable {
    /**
     * Moves a tensor towards its receiver. Resumable: after {@link OfferResult.BackPressured} the
     * same tensor is offered again and goes on where it stopped. One tensor at a time per channel.
     *
     * <p>A credit is used up when the tensor's first bytes enter the log. After {@link
     * OfferResult.Sent} the endpoint may read the tensor again, to send it once more, until {@link
     * #verified} counts it.
     *
     * @param tensor the whole payload, not empty, at most as long as the receiver's slots; left
     *     unchanged until it is verified
     */
    OfferResult offer(FrameKey key, MemorySegment tensor);

    /** Credits left on an outbound channel: tensors that may be begun now. */
    int credits(ChannelKey channel);

    /**
     * How many tensors of an outbound channel, in the order of their sending, arrived intact; their
     * memory may be reused. Never fewer than the tensors whose credits came back. Where frames are
     * not checked, all that were sent.
     */
    long verified(ChannelKey channel);

    /**
     * Where an arrived tensor lies that was not taken yet; it stays there until it is.
     *
     * @return as {@link #take}
     */
    int arrived(FrameKey key);

    /**
     * Takes an arrived tensor and gives the sender one credit back; the caller holds the slot until
     * {@link #release}. While the caller holds more slots than it announced (slots less credits),
     * credits wait for a release instead, so that no tensor ever arrives without a slot.
     *
     * @return index of the slot in {@link Inbound#slots}, or -1 if the tensor has not arrived
     *     completely
     */
    int take(FrameKey key);

    /** Gives a slot back for later arrivals. */
    void release(ChannelKey channel, int slot);

    /** What every link carried so far, by rising peer; empty if nobody counts. From any thread. */
    default List<LinkTraffic> traffic() {
        return List.of();
    }

    /**
     * What is on its way here and takes its time by plan, in words: no reason to call a rank
     * stalled that waits for it. From any thread.
     */
    default Optional<String> underWay() {
        return Optional.empty();
    }

    /**
     * What lies here, what is under way and what was refused, for stall reports: one line per
     * channel. From any thread; a snapshot that may be torn.
     */
    String describe();

    /**
     * Tells the peers that nothing more will come and stops. After this returns, the slots' memory
     * is not touched any more and may be freed; before, it must not be.
     */
    @Override
    void close();
}
