package dev.penstock.actors.dataplane.direct;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.Tensor;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A channel whose two ends live in one process, for an epoch. The sender copies into the receiver's
 * slots; whether its device reaches them shows with its first tensor and holds for all.
 *
 * <pre>
 *   sender    waits for a credit and a free slot, begins the copy, and when it is complete
 *   receiver  finds the tensor, takes it (the credit goes back), uses it, releases the slot
 * </pre>
 *
 * <p>Both ranks' threads; what only one of them calls says so.
 */
final class DirectChannel {
    private static final Logger LOG = LoggerFactory.getLogger(DirectChannel.class);
    private static final int NONE = -1;

    private final ChannelKey key;
    private final int fromRank;
    private final int toRank;

    // the receiver's, once it is there
    private List<DeviceBuffer> slots = List.of();
    private @Nullable FrameListener receiver;
    private final Deque<Integer> free = new ArrayDeque<>();
    private final Map<FrameKey, Integer> arrived = new HashMap<>();
    private boolean closed;

    /** Begun and not taken. */
    private int underWay;

    private TransferPath way = TransferPath.NOT_KNOWN;

    /** To be told when there is a credit again; null if it does not wait for one. */
    private @Nullable FrameListener waitsForCredit;

    /** Slot into which the sender copies; the sender's thread only. */
    private int filling = NONE;

    DirectChannel(ChannelKey key, int fromRank, int toRank) {
        this.key = key;
        this.fromRank = fromRank;
        this.toRank = toRank;
    }

    /**
     * The receiver is there.
     *
     * @param buffers as in {@link Inbound#slots}, nobody else copies to them
     */
    synchronized void open(List<DeviceBuffer> buffers, FrameListener listener) {
        slots = List.copyOf(buffers);
        receiver = listener;
        for (int slot = 0; slot < slots.size(); slot++) {
            slots.get(slot).lastUsed(); // by what made it zero
            free.add(slot);
        }
    }

    /** How tensors like this one go, as far as the sender knows. */
    synchronized TransferPath way(Tensor tensor) {
        if (way == TransferPath.NOT_KNOWN && receiver != null && !closed) {
            boolean direct = tensor.buffer().reaches(slots.getFirst());
            way = direct ? TransferPath.DIRECT : TransferPath.DATA_PLANE;
            LOG.info(
                    "boundary tensors of rank {} for rank {} ({}) go {}",
                    fromRank,
                    toRank,
                    key.kind(),
                    direct
                            ? "from device to device"
                            : "through the host: their devices do not see each other's memory");
        }
        return way;
    }

    /** Whether tensors come this way. */
    synchronized boolean isDirect() {
        return way == TransferPath.DIRECT;
    }

    /**
     * The sender's offer of a tensor on its device; the same until it is sent.
     *
     * @param credits as in {@link Outbound}
     */
    OfferResult offer(FrameKey frame, Tensor tensor, int credits, FrameListener sender) {
        if (filling == NONE) {
            OfferResult begun = begin(tensor, credits, sender);
            if (!begun.equals(OfferResult.SENT)) {
                return begun;
            }
        }
        if (!tensor.buffer().isCopied()) {
            return OfferResult.BACK_PRESSURED;
        }
        deliver(frame);
        return OfferResult.SENT;
    }

    private synchronized OfferResult begin(Tensor tensor, int credits, FrameListener sender) {
        if (closed || receiver == null) {
            return OfferResult.NOT_CONNECTED;
        }
        if (underWay == credits || free.isEmpty()) {
            waitsForCredit = sender;
            return OfferResult.NO_CREDIT;
        }
        int slot = free.remove();
        tensor.buffer().beginCopyTo(slots.get(slot), tensor.bytes());
        filling = slot;
        underWay++;
        return OfferResult.SENT;
    }

    private void deliver(FrameKey frame) {
        FrameListener told;
        synchronized (this) {
            told = closed ? null : receiver;
            arrived.put(frame, filling);
        }
        filling = NONE;
        if (told != null) {
            told.onFrame(frame);
        }
    }

    /** Takes a tensor; the receiver's thread. -1 if it is not there. */
    int take(FrameKey frame) {
        Integer slot;
        synchronized (this) {
            slot = arrived.remove(frame);
            if (slot != null) {
                underWay--;
            }
        }
        if (slot == null) {
            return NONE;
        }
        tellOfCredit();
        return slot;
    }

    /** Gives a slot back; the receiver's thread. */
    void release(int slot) {
        synchronized (this) {
            if (free.contains(slot)) {
                throw new DataPlaneException(
                        "slot %d of %s was released twice".formatted(slot, key));
            }
            slots.get(slot).lastUsed();
            free.add(slot);
        }
        tellOfCredit();
    }

    private void tellOfCredit() {
        FrameListener waiting;
        synchronized (this) {
            waiting = waitsForCredit;
            waitsForCredit = null;
        }
        if (waiting != null) {
            waiting.onCredit(key);
        }
    }

    /** Afterwards no copy to a slot begins; those under way end before the slots are freed. */
    synchronized void close() {
        closed = true;
    }

    @Override
    public synchronized String toString() {
        return "%s from rank %d to rank %d: %d under way, %d of %d slots free"
                .formatted(key, fromRank, toRank, underWay, free.size(), slots.size());
    }
}
