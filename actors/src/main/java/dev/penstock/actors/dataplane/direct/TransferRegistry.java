package dev.penstock.actors.dataplane.direct;

import dev.penstock.actors.dataplane.ChannelKey;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Where both ends of a channel find each other that live in one process. Owned by the process's
 * node and used by all its ranks, for one run. Any thread.
 */
public final class TransferRegistry {
    private record Key(int epoch, int fromRank, int toRank, ChannelKey channel) {}

    private final boolean direct;
    private final Map<Key, DirectChannel> channels = new ConcurrentHashMap<>();

    /**
     * @param direct whether tensors may go past the data plane at all
     */
    public TransferRegistry(boolean direct) {
        this.direct = direct;
    }

    boolean isDirect() {
        return direct;
    }

    DirectChannel channel(int epoch, int fromRank, int toRank, ChannelKey channel) {
        channels.keySet().removeIf(key -> key.epoch() < epoch);
        return channels.computeIfAbsent(
                new Key(epoch, fromRank, toRank, channel),
                key -> new DirectChannel(key.channel(), key.fromRank(), key.toRank()));
    }
}
