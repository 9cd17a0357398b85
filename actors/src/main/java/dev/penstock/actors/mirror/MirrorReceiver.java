package dev.penstock.actors.mirror;

import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import java.util.List;
import java.util.stream.IntStream;

/** Takes what arrives for a mirror to where it belongs. The shard's thread only. */
final class MirrorReceiver {
    private final HeldMirror mirror;
    private final MirrorChannel channel;
    private final Inbound inbound;
    private final List<DeviceBuffer> slots;
    private MirrorPart part = MirrorPart.GRADIENTS;
    private long pass;
    private long step;
    private int received;
    private int total;

    MirrorReceiver(HeldMirror mirror, MirrorChannel channel, DeviceScope scope) {
        this.mirror = mirror;
        this.channel = channel;
        this.slots =
                IntStream.rangeClosed(0, MirrorChannel.CREDITS)
                        .mapToObj(
                                i ->
                                        scope.allocate(
                                                "block of rank %d's mirror %d"
                                                        .formatted(mirror.rank(), i),
                                                channel.blockBytes()))
                        .toList();
        this.inbound =
                new Inbound(
                        channel.key(),
                        mirror.rank(),
                        MirrorChannel.CREDITS,
                        slots.stream().map(DeviceBuffer::segment).toList());
    }

    int rank() {
        return mirror.rank();
    }

    Inbound inbound() {
        return inbound;
    }

    /**
     * @param newStep of the gradients, or the one that the state is after
     */
    void begin(MirrorPart newPart, long newPass, long newStep) {
        part = newPart;
        pass = newPass;
        step = newStep;
        received = 0;
        total = channel.blocks(newPart).count();
        mirror.incomplete(newPart);
    }

    /** Takes at most one block. */
    MirrorProgress advance(Endpoint endpoint) {
        if (received == total) {
            return MirrorProgress.DONE;
        }
        int slot = endpoint.take(channel.frame(part, pass, received));
        if (slot < 0) {
            return MirrorProgress.WAITS_FOR_PEER;
        }
        channel.blocks(part).scatter(received, slots.get(slot));
        endpoint.release(channel.key(), slot);
        received++;
        if (received < total) {
            return MirrorProgress.MOVED;
        }
        mirror.arrived(part, step);
        return MirrorProgress.DONE;
    }
}
