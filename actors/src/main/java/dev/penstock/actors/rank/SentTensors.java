package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.cuda.device.DeviceBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;

/** Tensors of a channel that the data plane may have to send again, oldest first. */
final class SentTensors {
    private final ChannelKey channel;
    private final Deque<DeviceBuffer> kept = new ArrayDeque<>();
    private long reclaimed;

    SentTensors(ChannelKey channel) {
        this.channel = channel;
    }

    void add(DeviceBuffer tensor) {
        kept.add(tensor);
    }

    /** Gives back the tensors that arrived intact. */
    void reclaim(Endpoint endpoint, Consumer<DeviceBuffer> owner) {
        long verified = endpoint.verified(channel);
        while (reclaimed < verified && !kept.isEmpty()) {
            owner.accept(kept.remove());
            reclaimed++;
        }
    }
}
