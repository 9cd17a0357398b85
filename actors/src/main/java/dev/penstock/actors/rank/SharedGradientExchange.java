package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.direct.ReceiveSlots;
import dev.penstock.actors.dataplane.direct.SendBlocks;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;

/**
 * Replaces a gradient that two stages share by the sum of both parts, on both. Its blocks travel in
 * both directions, so no complete copy is ever needed; the sum of two numbers is the same in either
 * order, so both sides get the same bits.
 *
 * <p>A block may be sent again until the peer has verified it, so the peer's part stays in its slot
 * and is added only then. The peer takes a block without waiting for that, so both sides advance.
 */
final class SharedGradientExchange implements GradientExchange {
    private static final int BLOCK_ELEMENTS = 1 << 20;
    private static final int CREDITS = 2;
    private static final int NONE = -1;

    private final SharedGradient shared;
    private final Kernels kernels;
    private final Inbound inbound;
    private final Outbound outbound;
    private final ReceiveSlots slots;
    private final SendBlocks sending;
    private final int blocks;
    private int sent;
    private int received;
    private long sentBytes;
    private int heldSlot = NONE;

    /** The number of blocks sent in earlier passes. */
    private long sentBefore;

    SharedGradientExchange(
            int stage, SharedGradient shared, int peerRank, DeviceScope scope, Kernels kernels) {
        this.shared = shared;
        this.kernels = kernels;
        int peer = peerOf(stage, shared);
        long elements = shared.gradient().elements();
        this.blocks = Math.toIntExact((elements + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS);
        long bytes = Math.min(elements, BLOCK_ELEMENTS) * DType.F32.bytes();
        this.slots =
                new ReceiveSlots(
                        scope,
                        i -> "shared gradient of " + shared.name() + " " + i,
                        CREDITS + 1,
                        bytes);
        this.inbound =
                new Inbound(
                        new ChannelKey(FrameKind.SHARED_GRADIENT, peer, stage),
                        peerRank,
                        CREDITS,
                        slots.segments());
        this.outbound =
                new Outbound(
                        new ChannelKey(FrameKind.SHARED_GRADIENT, stage, peer), peerRank, CREDITS);
        this.sending =
                new SendBlocks(
                        outbound, scope, "shared gradient for rank " + peerRank, bytes, kernels);
    }

    /** Returns the other stage that shares a gradient. */
    static int peerOf(int stage, SharedGradient shared) {
        if (shared.stages().size() != 2 || !shared.stages().contains(stage)) {
            throw new IllegalArgumentException(
                    "gradient of %s: expected two sharing stages, one of them %d, got %s"
                            .formatted(shared.name(), stage, shared.stages()));
        }
        return shared.stages().get(shared.stages().get(0) == stage ? 1 : 0);
    }

    /**
     * Returns the bytes of all slots and blocks for a shared gradient of this size.
     *
     * @param staged whether links read other memory than the device's
     */
    static long slotBytes(long elements, boolean staged) {
        return (CREDITS + 1 + SendBlocks.count(CREDITS, staged))
                * Math.min(elements, BLOCK_ELEMENTS)
                * DType.F32.bytes();
    }

    Inbound inbound() {
        return inbound;
    }

    Outbound outbound() {
        return outbound;
    }

    @Override
    public void begin() {
        sentBefore += sent;
        sent = 0;
        sentBytes = 0;
        received = 0;
    }

    @Override
    public long sentBytes() {
        return sentBytes;
    }

    /** Moves at most one block in each direction. */
    @Override
    public Progress advance(Endpoint endpoint, long pass) {
        boolean linkBusy = false;
        boolean moved = false;
        if (sent < blocks) {
            var key = new FrameKey(outbound.channel(), pass, sent, 0);
            Tensor block = block(sent);
            switch (sending.offer(endpoint, key, block)) {
                case OfferResult.Sent _ -> {
                    sent++;
                    sentBytes += block.bytes();
                    moved = true;
                }
                case OfferResult.NoCredit _ -> {}
                case OfferResult.BackPressured _ -> linkBusy = true;
                case OfferResult.Failed(String reason) -> throw BoundaryLinks.linkFailed(reason);
            }
        }
        if (received < sent && takeOne(endpoint, pass)) {
            received++;
            moved = true;
        }
        if (received == blocks) {
            return Progress.DONE;
        }
        if (moved) {
            return Progress.AGAIN;
        }
        return linkBusy ? Progress.WAITS_FOR_LINK : Progress.WAITS_FOR_FRAME;
    }

    private boolean takeOne(Endpoint endpoint, long pass) {
        if (heldSlot == NONE) {
            heldSlot = endpoint.take(new FrameKey(inbound.channel(), pass, received, 0));
        }
        boolean mayAdd = endpoint.verified(outbound.channel()) > sentBefore + received;
        if (heldSlot == NONE || !mayAdd) {
            return false;
        }
        Tensor mine = block(received);
        kernels.add(slots.bring(heldSlot, DType.F32, mine.columns()), mine);
        kernels.finish();
        endpoint.release(inbound.channel(), heldSlot);
        heldSlot = NONE;
        return true;
    }

    private Tensor block(int index) {
        Tensor whole = shared.gradient();
        long first = (long) index * BLOCK_ELEMENTS;
        int count = (int) Math.min(BLOCK_ELEMENTS, whole.elements() - first);
        return new Tensor(
                whole.buffer(),
                whole.offsetBytes() + first * DType.F32.bytes(),
                DType.F32,
                1,
                count,
                count);
    }
}
