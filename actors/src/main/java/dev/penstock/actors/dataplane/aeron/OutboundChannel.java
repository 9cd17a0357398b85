package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.Outbound;
import org.jspecify.annotations.Nullable;

/** The sending side of a channel: credits, and the tensor that is partly in the log. */
final class OutboundChannel {
    private final ChannelKey key;
    private final PeerLink link;
    private final int credits;

    // written by the rank's thread
    private volatile long sent;
    private volatile @Nullable FrameKey sending;
    private volatile long position;
    private long total;

    // written by the poller
    private volatile long taken;

    OutboundChannel(Outbound outbound, PeerLink link) {
        this.key = outbound.channel();
        this.link = link;
        this.credits = outbound.credits();
    }

    ChannelKey key() {
        return key;
    }

    PeerLink link() {
        return link;
    }

    int credits() {
        return (int) (credits - (sent - taken));
    }

    // ---- the rank's thread

    /** Whether this tensor may enter the log, or go on. */
    boolean mayOffer(FrameKey tensor, long bytes) {
        FrameKey unfinished = sending;
        if (unfinished == null) {
            return sent - taken < credits;
        }
        if (!unfinished.equals(tensor) || bytes != total) {
            throw new DataPlaneException(
                    "offer on %s: expected the rest of %s (%d bytes), got %s (%d bytes)"
                            .formatted(
                                    ChannelNames.of(key),
                                    ChannelNames.of(unfinished),
                                    total,
                                    ChannelNames.of(tensor),
                                    bytes));
        }
        return true;
    }

    /** Where the tensor that is being sent goes on; 0 for a fresh one. */
    long position() {
        return position;
    }

    /**
     * A chunk is about to enter the log; the first one uses a credit. Counted before it is seen by
     * anybody, since the receiver may take the tensor and return its credit before the sender's
     * thread goes on.
     */
    void begin(FrameKey tensor, long bytes) {
        if (sending == null) {
            total = bytes;
            sending = tensor;
            long sentBefore = sent;
            sent = sentBefore + 1;
        }
    }

    /** A chunk is in the log. Returns whether it was the last. */
    boolean advance(long bytes, int chunk) {
        boolean complete = position + chunk == bytes;
        if (complete) {
            sending = null;
        }
        position = complete ? 0 : position + chunk;
        return complete;
    }

    // ---- the poller

    /**
     * Notes how many tensors were taken. The new count is visible before the old is judged, so
     * either the sender sees it or this call reports that the sender was out of credit.
     *
     * @return whether the channel had run out
     */
    boolean credited(long takenNow) {
        long before = taken;
        if (takenNow <= before) {
            return false;
        }
        taken = takenNow;
        return sent - before >= credits;
    }

    /** Whether so many can have been taken. */
    boolean isPlausible(long takenNow) {
        return takenNow <= sent;
    }

    // ---- any thread

    String describe() {
        FrameKey unfinished = sending;
        String state =
                unfinished == null
                        ? "idle"
                        : "sending %s at byte %d".formatted(ChannelNames.of(unfinished), position);
        return "to rank %d %s, %s, %d of %d credits left%s"
                .formatted(
                        link.toRank(),
                        ChannelNames.of(key),
                        state,
                        credits(),
                        credits,
                        link.isConnected() ? "" : ", not connected");
    }
}
