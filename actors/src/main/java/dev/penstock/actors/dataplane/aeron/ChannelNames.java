package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.TensorFrame;
import java.util.Locale;

/** Channels and tensors as stall reports and errors name them. */
final class ChannelNames {
    private ChannelNames() {}

    static String of(ChannelKey channel) {
        boolean apart = channel.fromPeer() != 0 || channel.toPeer() != 0;
        return "%s %d->%d%s"
                .formatted(
                        channel.kind().name().toLowerCase(Locale.ROOT).replace('_', ' '),
                        channel.fromStage(),
                        channel.stage(),
                        apart
                                ? " (replica %d->%d)"
                                        .formatted(channel.fromPeer(), channel.toPeer())
                                : "");
    }

    static String of(TensorFrame frame) {
        return "(step %d, micro-batch %d, slice %d)"
                .formatted(frame.step(), frame.microBatch(), frame.slice());
    }

    static String of(FrameKey key) {
        return "(step %d, micro-batch %d, slice %d)"
                .formatted(key.step(), key.microBatch(), key.slice());
    }
}
