package dev.penstock.actors.mirror;

import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A rank's part in keeping mirrors equal: after the ops of a step it sends its reduced gradients to
 * the holder of its mirror and takes those of the ranks whose mirrors it holds, in blocks, all
 * directions in turn, so that no two ranks wait for each other. The rank is done with its pass only
 * then; so when every rank is, every mirror has the step's gradients.
 *
 * <p>Lives as long as the endpoint it is opened with. The shard's thread only.
 */
public final class MirrorExchange {
    private final Optional<MirrorSender> sender;
    private final List<MirrorReceiver> receivers;

    /**
     * @param own state of this rank's stages, rising
     * @param held the mirrors that the layout gives this rank
     * @param scope for blocks on their way, see {@link MirrorMemory}
     */
    public MirrorExchange(
            int rank,
            MirrorLayout layout,
            List<TrainedState> own,
            List<HeldMirror> held,
            DeviceScope scope,
            Kernels kernels) {
        int holder = layout.holderOf(rank);
        this.sender =
                holder == MirrorLayout.NOBODY
                        ? Optional.empty()
                        : Optional.of(
                                new MirrorSender(
                                        holder,
                                        new MirrorChannel(rank, own, kernels),
                                        layout.fills().contains(rank),
                                        scope));
        List<MirrorReceiver> receiving = new ArrayList<>();
        for (HeldMirror mirror : held) {
            var channel = new MirrorChannel(mirror.rank(), mirror.states(), kernels);
            boolean fill = layout.fills().contains(mirror.rank());
            receiving.add(new MirrorReceiver(mirror, channel, fill, scope));
        }
        this.receivers = List.copyOf(receiving);
    }

    /** The channels that end here. */
    public List<Inbound> inbound() {
        return receivers.stream().map(MirrorReceiver::inbound).toList();
    }

    /** The channel to this rank's mirror, if it has one. */
    public List<Outbound> outbound() {
        return sender.map(MirrorSender::outbound).stream().toList();
    }

    /** Starts with the gradients of a step; before the first ones go the states to be filled. */
    public void begin(long pass, long step) {
        sender.ifPresent(sending -> sending.begin(pass));
        receivers.forEach(receiving -> receiving.begin(pass, step));
    }

    /** Moves at most one block each way. */
    public MirrorProgress advance(Endpoint endpoint) {
        MirrorProgress whole =
                sender.map(sending -> sending.advance(endpoint)).orElse(MirrorProgress.DONE);
        for (MirrorReceiver receiver : receivers) {
            whole = both(whole, receiver.advance(endpoint));
        }
        return whole;
    }

    /** Bytes of gradients that went to this rank's mirror since {@link #begin}. */
    long sentBytes() {
        return sender.map(MirrorSender::sentBytes).orElse(0L);
    }

    /** Whoever can move decides; then whoever must look again by itself; done are only all. */
    private static MirrorProgress both(MirrorProgress one, MirrorProgress other) {
        for (MirrorProgress first :
                List.of(
                        MirrorProgress.MOVED,
                        MirrorProgress.WAITS_FOR_LINK,
                        MirrorProgress.WAITS_FOR_PEER)) {
            if (one == first || other == first) {
                return first;
            }
        }
        return MirrorProgress.DONE;
    }
}
