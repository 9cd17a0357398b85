package dev.penstock.actors.mirror;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/** Sends a rank's tensors to its mirror, block by block. The shard's thread only. */
final class MirrorSender {
    private final MirrorChannel channel;
    private final Outbound outbound;
    private final DeviceBuffer scratch;
    private boolean fill;
    private MirrorPart part = MirrorPart.GRADIENTS;
    private long pass;
    private int sent;
    private int total;

    /** Blocks sent through the endpoint. */
    private long sentThrough;

    /** Bytes of gradients sent in this pass. */
    private long gradientBytes;

    /** The block under way: gathered once, however often it is offered. */
    private @Nullable Tensor block;

    /**
     * @param fill whether the whole state goes before the first gradients
     */
    MirrorSender(int holder, MirrorChannel channel, boolean fill, DeviceScope scope) {
        this.channel = channel;
        this.fill = fill;
        this.outbound = new Outbound(channel.key(), holder, MirrorChannel.CREDITS);
        this.scratch = scope.allocateStaged("block to the mirror", channel.blockBytes());
    }

    Outbound outbound() {
        return outbound;
    }

    void begin(long newPass) {
        pass = newPass;
        gradientBytes = 0;
        begin(fill ? MirrorPart.STATE : MirrorPart.GRADIENTS);
    }

    private void begin(MirrorPart newPart) {
        part = newPart;
        sent = 0;
        total = channel.blocks(newPart).count();
        block = null;
    }

    /** Bytes of gradients that went out since {@link #begin}; a state to be filled is not in it. */
    long sentBytes() {
        return gradientBytes;
    }

    /** Offers at most one block. */
    MirrorProgress advance(Endpoint endpoint) {
        if (sent == total && part == MirrorPart.STATE) {
            fill = false;
            begin(MirrorPart.GRADIENTS);
        }
        if (sent == total) {
            return MirrorProgress.DONE;
        }
        if (block == null && endpoint.verified(outbound.channel()) < sentThrough) {
            return MirrorProgress.WAITS_FOR_PEER; // the one before may have to go once more
        }
        Tensor next = block == null ? gather() : block;
        if (!next.buffer().isCopied()) {
            return MirrorProgress.WAITS_FOR_LINK;
        }
        return switch (endpoint.offer(channel.frame(part, pass, sent), next.staging())) {
            case OfferResult.Sent _ -> {
                sent++;
                sentThrough++;
                gradientBytes += part == MirrorPart.GRADIENTS ? next.bytes() : 0;
                block = null;
                yield MirrorProgress.MOVED;
            }
            case OfferResult.NoCredit _ -> MirrorProgress.WAITS_FOR_PEER;
            case OfferResult.BackPressured _ -> MirrorProgress.WAITS_FOR_LINK;
            case OfferResult.Failed(String reason) ->
                    throw new DataPlaneException("the data plane failed: " + reason);
        };
    }

    private Tensor gather() {
        Tensor gathered = channel.blocks(part).gather(sent, scratch);
        gathered.buffer().beginToHost(gathered.bytes());
        block = gathered;
        return gathered;
    }
}
