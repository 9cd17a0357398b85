package dev.penstock.actors.collective;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
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
    private final List<DeviceBuffer> slots;
    private @Nullable Endpoint endpoint;
    private long sent;

    BlockChannel(int rank, int peer, GroupRole role, int ranks, DeviceScope scope) {
        this.slots =
                IntStream.rangeClosed(0, CREDITS)
                        .mapToObj(
                                i ->
                                        scope.allocate(
                                                "%s block %d of rank %d".formatted(role, i, peer),
                                                BLOCK_BYTES))
                        .toList();
        this.inbound =
                new Inbound(
                        role.channel(peer, rank, ranks),
                        peer,
                        CREDITS,
                        slots.stream().map(DeviceBuffer::segment).toList());
        this.outbound = new Outbound(role.channel(rank, peer, ranks), peer, CREDITS);
    }

    /** Bytes of the slots for one other member. */
    static long slotBytes() {
        return (CREDITS + 1L) * BLOCK_BYTES;
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
        return switch (endpoint().offer(key, tensor.segment())) {
            case OfferResult.Sent _ -> {
                sent++;
                yield true;
            }
            case OfferResult.NoCredit _, OfferResult.BackPressured _ -> false;
            case OfferResult.Failed(String reason) ->
                    throw new DataPlaneException("the data plane failed: " + reason);
        };
    }

    /** Blocks sent since the links were opened. */
    long sent() {
        return sent;
    }

    /** Whether so many of the blocks sent since then may be changed again. */
    boolean isVerified(long blocks) {
        return endpoint().verified(outbound.channel()) >= blocks;
    }

    /** The slot where the block is, held until {@link #release}; {@link #NONE} before it came. */
    int take(long number, boolean summed, int block) {
        return endpoint().take(key(inbound.channel(), number, summed, block));
    }

    /** What lies in a slot, of the shape of another block. */
    Tensor slot(int slot, Tensor like) {
        return Tensor.of(slots.get(slot), like.type(), 1, like.columns());
    }

    /** Gives a slot back that no kernel reads any more. */
    void release(int slot) {
        endpoint().release(inbound.channel(), slot);
    }
}
