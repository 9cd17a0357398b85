package dev.penstock.actors.dataplane.direct;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.Tensor;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A rank's ends of the channels to and from ranks of the same process, for an epoch. All of them
 * are open in the data plane, too, which carries what devices do not. The rank's thread only.
 */
public final class DirectTransfers implements AutoCloseable {
    /** A channel that begins here, and its credits. */
    private record Sending(DirectChannel channel, int credits) {}

    private final TransferRegistry registry;
    private final int rank;
    private final int epoch;
    private final List<Integer> homes;
    private final FrameListener listener;
    private final Map<ChannelKey, DirectChannel> inbound = new HashMap<>();
    private final Map<ChannelKey, Sending> outbound = new HashMap<>();

    /**
     * @param homes by rank, the lowest rank that lives in the same process
     * @param listener told of arrivals and credits by other ranks' threads
     */
    public DirectTransfers(
            TransferRegistry registry,
            int rank,
            int epoch,
            List<Integer> homes,
            FrameListener listener) {
        this.registry = registry;
        this.rank = rank;
        this.epoch = epoch;
        this.homes = homes;
        this.listener = listener;
    }

    private boolean isHere(int other) {
        return homes.get(other).equals(homes.get(rank));
    }

    /**
     * Opens a channel that ends here, if its tensors may come from device to device. Whether the
     * sender is in this process the sender knows: where a rank went may be settled after this one
     * was told.
     *
     * @param slots the buffers whose staging memory the data plane has as {@link Inbound#slots}
     */
    public void receive(Inbound channel, List<DeviceBuffer> slots) {
        if (slots.stream().allMatch(DeviceBuffer::isStaged)) {
            DirectChannel opened =
                    registry.channel(epoch, channel.fromRank(), rank, channel.channel());
            inbound.put(channel.channel(), opened);
            opened.open(slots, listener);
        }
    }

    /** Opens a channel that begins here, if its receiver is in this process. */
    public void send(Outbound channel) {
        if (registry.isDirect() && isHere(channel.toRank())) {
            outbound.put(
                    channel.channel(),
                    new Sending(
                            registry.channel(epoch, rank, channel.toRank(), channel.channel()),
                            channel.credits()));
        }
    }

    /** How this tensor goes to the receiver of a channel. */
    public TransferPath way(ChannelKey channel, Tensor tensor) {
        Sending sending = outbound.get(channel);
        return sending == null || !tensor.buffer().isStaged()
                ? TransferPath.DATA_PLANE
                : sending.channel().way(tensor);
    }

    /**
     * Same as {@code Endpoint.offer}, of a tensor whose way is direct; once it is sent its memory
     * may be used again.
     */
    public OfferResult offer(FrameKey frame, Tensor tensor) {
        Sending sending = outbound.get(frame.channel());
        if (sending == null) {
            throw new IllegalStateException("rank %d sends nothing on %s".formatted(rank, frame));
        }
        return sending.channel().offer(frame, tensor, sending.credits(), listener);
    }

    /** Whether a channel's tensors come from device to device. */
    public boolean bring(ChannelKey channel) {
        DirectChannel found = inbound.get(channel);
        return found != null && found.isDirect();
    }

    /** Same as {@code Endpoint.take}: what kernels are asked for from now on sees the tensor. */
    public int take(FrameKey frame) {
        DirectChannel found = inbound.get(frame.channel());
        return found == null ? -1 : found.take(frame);
    }

    /** Same as {@code Endpoint.release}, of a channel that {@link #bring brings} tensors. */
    public void release(ChannelKey channel, int slot) {
        DirectChannel found = inbound.get(channel);
        if (found == null) {
            throw new IllegalStateException("rank %d takes nothing on %s".formatted(rank, channel));
        }
        found.release(slot);
    }

    /** Before the memory of slots and sent tensors is freed. */
    @Override
    public void close() {
        inbound.values().forEach(DirectChannel::close);
    }
}
