package dev.penstock.actors.dataplane.emulated;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.LinkTraffic;
import dev.penstock.actors.dataplane.OfferResult;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;

/** An endpoint that does not show what its links have not delivered yet. */
final class EmulatedEndpoint implements Endpoint {
    private static final int NOT_THERE = -1;

    private final Endpoint real;
    private final Deliveries deliveries;

    EmulatedEndpoint(Endpoint real, Deliveries deliveries) {
        this.real = real;
        this.deliveries = deliveries;
    }

    @Override
    public OfferResult offer(FrameKey key, MemorySegment tensor) {
        return real.offer(key, tensor);
    }

    @Override
    public int credits(ChannelKey channel) {
        return real.credits(channel);
    }

    @Override
    public long verified(ChannelKey channel) {
        return real.verified(channel);
    }

    @Override
    public int arrived(FrameKey key) {
        return deliveries.isDelivered(key) ? real.arrived(key) : NOT_THERE;
    }

    @Override
    public int take(FrameKey key) {
        if (!deliveries.isDelivered(key)) {
            return NOT_THERE;
        }
        int slot = real.take(key);
        if (slot != NOT_THERE) {
            deliveries.taken(key);
        }
        return slot;
    }

    @Override
    public void release(ChannelKey channel, int slot) {
        real.release(channel, slot);
    }

    @Override
    public List<LinkTraffic> traffic() {
        return real.traffic();
    }

    @Override
    public Optional<String> underWay() {
        return deliveries.describe();
    }

    @Override
    public String describe() {
        return real.describe() + deliveries.describe().map(text -> "\n" + text).orElse("");
    }

    @Override
    public void close() {
        deliveries.close();
        real.close();
    }
}
