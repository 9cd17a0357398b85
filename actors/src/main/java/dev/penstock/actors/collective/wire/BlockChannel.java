package dev.penstock.actors.collective.wire;

import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.direct.ReceiveSlots;
import dev.penstock.actors.dataplane.direct.SendBlocks;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Blocks to and from one other member. The rank's thread only. */
final class BlockChannel {
    /** 1 MiB: four of F32 in a million elements, so that sums and transfers overlap. */
    static final int BLOCK_BYTES = 1 << 20;

    private static final int CREDITS = 2;

    /** No slot. */
    static final int NONE = -1;

    private final Inbound inbound;
    private final Outbound outbound;
    private final ReceiveSlots slots;
    private final SendBlocks sending;
    private @Nullable Endpoint endpoint;

    BlockChannel(
            int rank, int peer, GroupRole role, int ranks, DeviceScope scope, Kernels kernels) {
        this.slots =
                new ReceiveSlots(
                        scope,
                        i -> "%s block %d of rank %d".formatted(role, i, peer),
                        CREDITS + 1,
                        BLOCK_BYTES);
        this.inbound =
                new Inbound(role.channel(peer, rank, ranks), peer, CREDITS, slots.segments());
        this.outbound = new Outbound(role.channel(rank, peer, ranks), peer, CREDITS);
        this.sending =
                new SendBlocks(
                        outbound,
                        scope,
                        "%s block for rank %d".formatted(role, peer),
                        BLOCK_BYTES,
                        kernels);
    }

    /**
     * Bytes of slots and blocks for one other member.
     *
     * @param staged whether links read other memory than the device's
     */
    static long slotBytes(boolean staged) {
        return (CREDITS + 1L + SendBlocks.count(CREDITS, staged)) * BLOCK_BYTES;
    }

    Inbound inbound() {
        return inbound;
    }

    Outbound outbound() {
        return outbound;
    }

    void bind(Endpoint opened) {
        endpoint = opened;
    }

    private Endpoint endpoint() {
        return Objects.requireNonNull(endpoint, "links are not open");
    }

    private static FrameKey key(ChannelKey channel, long number, boolean summed, int block) {
        return new FrameKey(channel, number, summed ? 1 : 0, block);
    }

    /** Whether the whole block is on its way; it stays unchanged until it is verified. */
    boolean send(long number, boolean summed, int block, Tensor tensor) {
        FrameKey key = key(outbound.channel(), number, summed, block);
        return switch (sending.offer(endpoint(), key, tensor)) {
            case OfferResult.Sent _ -> true;
            case OfferResult.NoCredit _, OfferResult.BackPressured _ -> false;
            case OfferResult.Failed(String reason) ->
                    throw new DataPlaneException("the data plane failed: " + reason);
        };
    }

    /** Blocks sent since the links were opened. */
    long sent() {
        return sending.sent();
    }

    /** Whether so many of the blocks sent since then may be changed again. */
    boolean isVerified(long blocks) {
        return endpoint().verified(outbound.channel()) >= blocks;
    }

    /**
     * The slot where the block is, held until {@link #release}; {@link #NONE} before it came.
     * Kernels asked for from now on see it.
     *
     * @param like of the same shape
     */
    int take(long number, boolean summed, int block, Tensor like) {
        int slot = endpoint().take(key(inbound.channel(), number, summed, block));
        if (slot != NONE) {
            slots.bring(slot, like.type(), like.columns());
        }
        return slot;
    }

    /** What lies in a slot, of the shape of another block. */
    Tensor slot(int slot, Tensor like) {
        return slots.tensor(slot, like.type(), like.columns());
    }

    /** Gives a slot back that no kernel reads any more. */
    void release(int slot) {
        endpoint().release(inbound.channel(), slot);
    }
}
