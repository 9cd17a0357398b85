package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameRefusal;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.TensorFrame;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The receiving side of a channel: slots, and the tensor that is arriving. A slot goes from free to
 * filling to arrived in the poller's hands, then to held and back to free in the rank's; its state
 * alone hands it over, so neither waits for the other.
 *
 * <p>Chunks are accepted in the order of sending only. After a gap or a damaged frame everything is
 * refused until the sender, asked for it, continues from the place that is missing.
 */
final class InboundChannel {
    private static final int FREE = 0;
    private static final int FILLING = 1;
    private static final int ARRIVED = 2;
    private static final int HELD = 3;
    private static final int NONE = -1;

    /**
     * The same chunk damaged so often is no accident any more: where one frame in twenty is, eight
     * in a row befall one chunk in 25 thousand million.
     */
    static final int DAMAGE_LIMIT = 8;

    private final ChannelKey key;
    private final int fromRank;
    private final int credits;
    private final List<MemorySegment> slots;
    private final long slotBytes;
    private final AtomicIntegerArray states;
    private final AtomicReferenceArray<@Nullable FrameKey> keys;

    // the poller's
    private int filling = NONE;
    private long filled;
    private long total;
    private long begun;
    private int damages;
    private boolean asked;
    private volatile boolean asksAgain;
    private volatile long verified;
    private volatile long receivedBytes;

    // the rank's thread's; others read
    private volatile long taken;
    private int held;
    private volatile long creditsOwed;

    // under the lock of the link that carries the credits
    private volatile long creditsSent;
    private volatile boolean answerDue;

    InboundChannel(Inbound inbound) {
        key = inbound.channel();
        fromRank = inbound.fromRank();
        credits = inbound.credits();
        slots = inbound.slots();
        slotBytes = slots.stream().mapToLong(MemorySegment::byteSize).min().orElse(0);
        states = new AtomicIntegerArray(slots.size());
        keys = new AtomicReferenceArray<>(slots.size());
    }

    ChannelKey key() {
        return key;
    }

    int fromRank() {
        return fromRank;
    }

    // ---- the poller's thread

    /** Moves an intact data frame's chunk into its slot. Returns why not, or null. */
    @Nullable FrameRefusal accept(TensorFrame frame, MemorySegment payload, long payloadAt) {
        FrameRefusal refusal = order(frame);
        if (refusal == null) {
            refusal = frame.offset() == 0 ? begin(frame) : next(frame);
        }
        if (refusal != null) {
            return refusal;
        }
        MemorySegment.copy(payload, payloadAt, slots.get(filling), filled, frame.chunkBytes());
        filled += frame.chunkBytes();
        long receivedBefore = receivedBytes;
        receivedBytes = receivedBefore + frame.chunkBytes();
        FrameEvent.record(false, fromRank, key, frame.chunkBytes());
        damages = 0;
        asked = false;
        return null;
    }

    private @Nullable FrameRefusal order(TensorFrame frame) {
        if (isExpected(frame)) {
            return null;
        }
        boolean known =
                frame.sequence() < verified
                        || (frame.sequence() == verified && frame.offset() < filled());
        return known ? FrameRefusal.DUPLICATE : FrameRefusal.OUT_OF_ORDER;
    }

    private boolean isExpected(TensorFrame frame) {
        return frame.sequence() == verified && frame.offset() == filled();
    }

    private @Nullable FrameRefusal begin(TensorFrame frame) {
        if (frame.totalBytes() > slotBytes) {
            return FrameRefusal.LARGER_THAN_SLOT;
        }
        if (find(frame) != NONE) {
            return FrameRefusal.DUPLICATE;
        }
        int free = firstFree();
        if (free == NONE || begun - taken >= credits) {
            return FrameRefusal.CREDIT_EXCEEDED;
        }
        keys.set(free, new FrameKey(key, frame.step(), frame.microBatch(), frame.slice()));
        states.set(free, FILLING);
        filling = free;
        filled = 0;
        total = frame.totalBytes();
        begun++;
        return null;
    }

    private @Nullable FrameRefusal next(TensorFrame frame) {
        boolean expected = frame.totalBytes() == total && frame.isOf(keyOf(filling));
        return expected ? null : FrameRefusal.OUT_OF_ORDER;
    }

    /** Tensors that arrived whole; the number of the one that is arriving or comes next. */
    long verified() {
        return verified;
    }

    /** Bytes of the tensor that is arriving. */
    long filled() {
        return filling == NONE ? 0 : filled;
    }

    /**
     * A frame of this channel, as far as its header can be trusted, was damaged: it is asked for
     * again. Returns whether the same chunk was damaged too often for that.
     */
    boolean damaged(TensorFrame frame) {
        if (isExpected(frame)) {
            damages++;
        }
        asksAgain = true;
        asked = true;
        return damages >= DAMAGE_LIMIT;
    }

    /** Something before a frame is missing: asked for once. */
    void missed() {
        if (!asked) {
            asked = true;
            asksAgain = true;
        }
    }

    /** The sender is as far as this and wants to know what arrived. */
    void probed(long sequence, long offset) {
        if (verified < sequence || (verified == sequence && filled() < offset)) {
            asked = true;
            asksAgain = true;
        } else {
            answerDue = true;
        }
    }

    boolean asksAgain() {
        return asksAgain;
    }

    void askedAgain() {
        asksAgain = false;
    }

    /** If the tensor that was arriving is complete: hands it over and returns its key. */
    @Nullable FrameKey complete() {
        if (filling == NONE || filled < total) {
            return null;
        }
        FrameKey arrived = keyOf(filling);
        long before = verified;
        verified = before + 1; // first, for who takes the tensor tells the sender both
        states.set(filling, ARRIVED);
        filling = NONE;
        return arrived;
    }

    /** Bytes of the tensor that arrived last. */
    long lastBytes() {
        return total;
    }

    private int firstFree() {
        for (int slot = 0; slot < slots.size(); slot++) {
            if (states.get(slot) == FREE) {
                return slot;
            }
        }
        return NONE;
    }

    private int find(TensorFrame frame) {
        for (int slot = 0; slot < slots.size(); slot++) {
            int state = states.get(slot);
            if ((state == ARRIVED || state == FILLING) && frame.isOf(keyOf(slot))) {
                return slot;
            }
        }
        return NONE;
    }

    // ---- the rank's thread

    int arrived(FrameKey wanted) {
        for (int slot = 0; slot < slots.size(); slot++) {
            if (states.get(slot) == ARRIVED && wanted.equals(keys.get(slot))) {
                return slot;
            }
        }
        return NONE;
    }

    int take(FrameKey wanted) {
        int slot = arrived(wanted);
        if (slot != NONE) {
            states.set(slot, HELD);
            held++;
            long takenBefore = taken;
            taken = takenBefore + 1;
            settleCredits();
        }
        return slot;
    }

    void release(int slot) {
        if (slot < 0 || slot >= slots.size() || states.get(slot) != HELD) {
            throw new DataPlaneException(
                    "release on %s: expected a held slot of %d, got slot %d"
                            .formatted(key, slots.size(), slot));
        }
        states.set(slot, FREE);
        held--;
        settleCredits();
    }

    /** Tensors held beyond the announced number keep their credits until released. */
    private void settleCredits() {
        creditsOwed = taken - Math.max(0, held - (slots.size() - credits));
    }

    // ---- credits, under the lock of the link

    /** Credits that the sender has not been told of yet. */
    boolean owesCredit() {
        return creditsOwed > creditsSent || answerDue;
    }

    /** What the next credit frame says. */
    long creditsOwed() {
        return creditsOwed;
    }

    /** What is read after this answers any question asked before. */
    void aboutToAnswer() {
        answerDue = false;
    }

    void answerLater() {
        answerDue = true;
    }

    void creditSent(long credits) {
        creditsSent = credits;
    }

    // ---- any thread

    /** Bytes of tensors that were accepted. */
    long receivedBytes() {
        return receivedBytes;
    }

    String describe() {
        StringBuilder text = new StringBuilder();
        text.append("from rank ").append(fromRank).append(' ').append(ChannelNames.of(key));
        int free = 0;
        for (int slot = 0; slot < slots.size(); slot++) {
            FrameKey tensor = keys.get(slot);
            int state = states.get(slot);
            if (state == FREE || tensor == null) {
                free++;
            } else {
                String verb = state == FILLING ? "arriving" : state == ARRIVED ? "arrived" : "held";
                text.append(", ").append(verb).append(' ').append(ChannelNames.of(tensor));
            }
        }
        return text.append(", %d of %d slots free".formatted(free, slots.size())).toString();
    }

    private FrameKey keyOf(int slot) {
        FrameKey tensor = keys.get(slot);
        if (tensor == null) {
            throw new IllegalStateException("slot %d of %s has no tensor".formatted(slot, key));
        }
        return tensor;
    }
}
