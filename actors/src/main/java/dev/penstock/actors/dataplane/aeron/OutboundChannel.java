package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.Outbound;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The sending side of a channel: credits, the tensor that is partly in the log, and the tensors
 * that are kept until the receiver has verified them. Tensors are numbered in the order of sending:
 *
 * <pre>
 *   taken &lt;= verified &lt;= complete &lt;= sent &lt;= taken + credits
 *            [-- kept, may go again --)
 * </pre>
 */
final class OutboundChannel {
    private static final long NONE = Long.MAX_VALUE;

    private final ChannelKey key;
    private final PeerLink link;
    private final boolean checked;
    private final int credits;

    /** By number modulo credits: fewer than that many are ever kept. */
    private final Kept[] kept;

    // written under the link's lock
    private volatile long sent;
    private volatile long complete;
    private volatile @Nullable FrameKey sending;
    private volatile long position;
    private volatile long resent;
    private volatile long sentBytes;
    private volatile long backPressured;
    private volatile long outOfCredit;
    private boolean held;
    private long total;
    private long frames;
    private long againTensor = NONE;
    private long againOffset;

    // written by the poller
    private volatile long taken;
    private volatile long verified;
    private final AtomicReference<@Nullable Missing> missing = new AtomicReference<>();

    // when something was last sent or heard
    private volatile long quietSinceNanos;

    private record Kept(FrameKey key, MemorySegment tensor) {}

    /** What the receiver asks for: a tensor's number, and from which byte on. */
    private record Missing(long tensor, long offset) {}

    /**
     * A channel with nothing sent.
     *
     * @param checked whether the receiver finds damage, so that tensors are kept until verified
     */
    OutboundChannel(Outbound outbound, PeerLink link, boolean checked) {
        this.key = outbound.channel();
        this.link = link;
        this.checked = checked;
        this.credits = outbound.credits();
        this.kept = new Kept[credits];
    }

    ChannelKey key() {
        return key;
    }

    PeerLink link() {
        return link;
    }

    boolean isChecked() {
        return checked;
    }

    int credits() {
        return (int) (credits - (sent - taken));
    }

    /** Tensors of which the sender needs nothing any more, in the order of sending. */
    long verified() {
        return checked ? verified : complete;
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

    /** The tensor may not enter the log yet; however often it is offered, it waits once. */
    void waitsForCredit() {
        if (!held) {
            held = true;
            long before = outOfCredit;
            outOfCredit = before + 1;
        }
    }

    // ---- under the link's lock

    /** The log is full; see {@link #waitsForCredit}. */
    void waitsForLog() {
        if (!held) {
            held = true;
            long before = backPressured;
            backPressured = before + 1;
        }
    }

    /**
     * A chunk is about to enter the log; the first one uses a credit. Counted before it is seen by
     * anybody, since the receiver may take the tensor and return its credit before the sender's
     * thread goes on.
     */
    void begin(FrameKey tensorKey, MemorySegment tensor) {
        if (sending == null) {
            total = tensor.byteSize();
            sending = tensorKey;
            long number = sent;
            kept[(int) (number % credits)] = new Kept(tensorKey, tensor);
            sent = number + 1;
        }
    }

    /** A chunk of a tensor, fresh or sent again, is about to enter the log. */
    void claimed(FrameKey tensorKey, long number, MemorySegment tensor, int chunk) {
        frames++;
        long sentBefore = sentBytes;
        sentBytes = sentBefore + chunk;
        if (number == complete) {
            begin(tensorKey, tensor);
        }
    }

    /** A chunk is in the log. Returns whether it was the last. */
    boolean advance(long bytes, int chunk) {
        boolean last = position + chunk == bytes;
        if (last) {
            held = false;
            sending = null;
            long completeBefore = complete;
            complete = completeBefore + 1;
        }
        position = last ? 0 : position + chunk;
        return last;
    }

    /** Where the tensor that is being sent goes on; 0 for a fresh one. */
    long position() {
        return position;
    }

    /** The number of the tensor that is being sent, or will be next. */
    long number() {
        return complete;
    }

    /** Frames of the channel so far, those sent again, too. */
    long frames() {
        return frames;
    }

    /** Whether tensors wait to be sent again. */
    boolean sendsAgain() {
        return againTensor != NONE || missing.get() != null;
    }

    /**
     * Goes back to what the receiver misses and sends it again, as far as there is room.
     *
     * @return whether nothing is left to be sent again
     */
    boolean sendAgain(FrameWriter writer) {
        goBack();
        while (againTensor < complete) {
            Kept again = kept[(int) (againTensor % credits)];
            long left = again.tensor.byteSize() - againOffset;
            int chunk = (int) Math.min(writer.longestChunk(), left);
            long result =
                    writer.chunk(this, again.key, againTensor, again.tensor, againOffset, chunk);
            if (result < 0) {
                return false;
            }
            long resentBefore = resent;
            resent = resentBefore + 1;
            againOffset += chunk;
            if (chunk == left) {
                againTensor++;
                againOffset = 0;
            }
        }
        againTensor = NONE;
        return true;
    }

    private void goBack() {
        Missing asked = missing.getAndSet(null);
        if (asked == null || asked.tensor < verified) {
            return;
        }
        if (asked.tensor < complete) {
            Kept first = kept[(int) (asked.tensor % credits)];
            if (asked.offset < first.tensor.byteSize()) {
                againTensor = asked.tensor;
                againOffset = asked.offset;
                position = 0;
            }
        } else if (asked.tensor == complete && sending != null && asked.offset < position) {
            position = asked.offset;
        }
    }

    /** Whether tensors are out and nothing was heard of them for so long. */
    boolean isQuiet(long now, long nanos) {
        return sent > taken && now - quietSinceNanos > nanos;
    }

    /** Something was sent or heard. */
    void stirred(long now) {
        quietSinceNanos = now;
    }

    // ---- the poller

    /**
     * Notes how many tensors were taken and verified. The new count is visible before the old is
     * judged, so either the sender sees it or this call reports that the sender was out of credit.
     *
     * @return whether the channel had run out, or more tensors are verified
     */
    boolean credited(long takenNow, long verifiedNow) {
        boolean news = verifiedNow > verified;
        if (news) {
            verified = verifiedNow;
        }
        long before = taken;
        if (takenNow > before) {
            taken = takenNow;
            return (news && checked) || sent - before >= credits;
        }
        return news && checked;
    }

    /** Whether so many can have been taken and verified. */
    boolean isPlausible(long takenNow, long verifiedNow) {
        return takenNow <= verifiedNow && verifiedNow <= sent;
    }

    /** The receiver misses what begins here. Returns whether that can be. */
    boolean misses(long tensor, long offset) {
        if (!checked || tensor > sent) {
            return false;
        }
        missing.set(new Missing(tensor, offset));
        return true;
    }

    // ---- any thread

    /** Frames sent again. */
    long resent() {
        return resent;
    }

    /** Bytes of tensors that entered the log. */
    long sentBytes() {
        return sentBytes;
    }

    /** Tensors that met a full log. */
    long backPressured() {
        return backPressured;
    }

    /** Tensors that had to wait for credit. */
    long outOfCredit() {
        return outOfCredit;
    }

    String describe() {
        FrameKey unfinished = sending;
        String state =
                unfinished == null
                        ? "idle"
                        : "sending %s at byte %d".formatted(ChannelNames.of(unfinished), position);
        return "to rank %d %s, %s, %d of %d credits left%s%s"
                .formatted(
                        link.toRank(),
                        ChannelNames.of(key),
                        state,
                        credits(),
                        credits,
                        resent == 0 ? "" : ", %d frames sent again".formatted(resent),
                        link.isConnected() ? "" : ", not connected");
    }
}
