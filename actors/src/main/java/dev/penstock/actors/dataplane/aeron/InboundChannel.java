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
import org.agrona.DirectBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The receiving side of a channel: slots, and the tensor that is arriving. A slot goes from free to
 * filling to arrived in the poller's hands, then to held and back to free in the rank's; its state
 * alone hands it over, so neither waits for the other.
 */
final class InboundChannel {
    private static final int FREE = 0;
    private static final int FILLING = 1;
    private static final int ARRIVED = 2;
    private static final int HELD = 3;
    private static final int NONE = -1;

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

    // the rank's thread's; others read
    private volatile long taken;
    private int held;
    private volatile long creditsOwed;

    // guarded by the link that carries the credits
    private long creditsSent;

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

    /** Moves a checked data frame's chunk into its slot. Returns why not, or null. */
    @Nullable FrameRefusal accept(TensorFrame frame, DirectBuffer buffer, int payloadAt) {
        FrameRefusal refusal = frame.offset() == 0 ? begin(frame) : next(frame);
        if (refusal != null) {
            return refusal;
        }
        MemorySegment slot = slots.get(filling);
        RawMemory.copyFrom(buffer, payloadAt, slot, filled, frame.chunkBytes());
        if (frame.hasCrc()
                && Checksums.crc32c(slot, filled, frame.chunkBytes()) != frame.crc32c()) {
            abandon();
            return FrameRefusal.CORRUPT;
        }
        filled += frame.chunkBytes();
        return null;
    }

    private @Nullable FrameRefusal begin(TensorFrame frame) {
        if (frame.totalBytes() > slotBytes) {
            return FrameRefusal.LARGER_THAN_SLOT;
        }
        if (find(frame) != NONE) {
            return FrameRefusal.DUPLICATE;
        }
        int free = filling == NONE ? firstFree() : NONE;
        if (filling != NONE) {
            return FrameRefusal.OUT_OF_ORDER;
        }
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
        boolean expected =
                filling != NONE
                        && frame.offset() == filled
                        && frame.totalBytes() == total
                        && frame.isOf(keyOf(filling));
        return expected ? null : FrameRefusal.OUT_OF_ORDER;
    }

    /** If the tensor that was arriving is complete: hands it over and returns its key. */
    @Nullable FrameKey complete() {
        if (filling == NONE || filled < total) {
            return null;
        }
        FrameKey arrived = keyOf(filling);
        states.set(filling, ARRIVED);
        filling = NONE;
        return arrived;
    }

    private void abandon() {
        states.set(filling, FREE);
        filling = NONE;
        begun--;
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

    int take(FrameKey wanted) {
        for (int slot = 0; slot < slots.size(); slot++) {
            if (states.get(slot) == ARRIVED && wanted.equals(keys.get(slot))) {
                states.set(slot, HELD);
                held++;
                long takenBefore = taken;
                taken = takenBefore + 1;
                settleCredits();
                return slot;
            }
        }
        return NONE;
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
        return creditsOwed > creditsSent;
    }

    /** What the next credit frame says. */
    long creditsOwed() {
        return creditsOwed;
    }

    void creditSent(long credits) {
        creditsSent = credits;
    }

    // ---- any thread

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
