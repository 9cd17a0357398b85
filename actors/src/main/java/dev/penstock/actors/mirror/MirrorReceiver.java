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
    private boolean fill;
    private MirrorPart part = MirrorPart.GRADIENTS;
    private long pass;
    private long step;
    private int received;
    private int total;

    /**
     * @param fill whether the whole state comes before the first gradients
     */
    MirrorReceiver(HeldMirror mirror, MirrorChannel channel, boolean fill, DeviceScope scope) {
        this.mirror = mirror;
        this.channel = channel;
        this.fill = fill;
        this.slots =
                IntStream.rangeClosed(0, MirrorChannel.CREDITS)
                        .mapToObj(
                                i ->
                                        scope.allocateStaged(
                                                "block of rank %d's mirror %d"
                                                        .formatted(mirror.rank(), i),
                                                channel.blockBytes()))
                        .toList();
        this.inbound =
                new Inbound(
                        channel.key(),
                        mirror.rank(),
                        MirrorChannel.CREDITS,
                        slots.stream().map(DeviceBuffer::staging).toList());
    }

    Inbound inbound() {
        return inbound;
    }

    /**
     * @param newStep of the gradients; a state to be filled is after the one before
     */
    void begin(long newPass, long newStep) {
        pass = newPass;
        step = newStep;
        begin(fill ? MirrorPart.STATE : MirrorPart.GRADIENTS);
    }

    private void begin(MirrorPart newPart) {
        part = newPart;
        received = 0;
        total = channel.blocks(newPart).count();
        mirror.incomplete(newPart);
        if (total == 0) {
            complete(); // of a rank that trains nothing, nothing comes
        }
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
        if (received == total) {
            complete();
        }
        return MirrorProgress.MOVED;
    }

    private void complete() {
        switch (part) {
            case STATE -> {
                fill = false;
                mirror.arrived(part, step - 1);
                begin(MirrorPart.GRADIENTS);
            }
            case GRADIENTS -> mirror.arrived(part, step);
        }
    }
}
