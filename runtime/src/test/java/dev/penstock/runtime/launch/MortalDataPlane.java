package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.LinkTraffic;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.PeerAddress;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The data plane of a process that may die: from then on it sends nothing, gives no credit and says
 * no farewell.
 */
record MortalDataPlane(DataPlane plane, ProcessLife life) implements DataPlane {
    @Override
    public Endpoint open(Opening opening, FrameListener listener) {
        life.requireAlive();
        return new MortalEndpoint(plane.open(opening, new MortalListener(listener, life)), life);
    }

    @Override
    public PeerAddress address() {
        return plane.address();
    }

    @Override
    public boolean keepsSentTensors() {
        return plane.keepsSentTensors();
    }

    @Override
    public boolean isLost() {
        return plane.isLost();
    }

    @Override
    public void relink(String link) {
        life.requireAlive();
        plane.relink(link);
    }

    @Override
    public void close() {
        plane.close();
    }

    private record MortalEndpoint(Endpoint endpoint, ProcessLife life) implements Endpoint {
        @Override
        public OfferResult offer(FrameKey key, MemorySegment tensor) {
            life.requireAlive();
            return endpoint.offer(key, tensor);
        }

        @Override
        public int credits(ChannelKey channel) {
            return endpoint.credits(channel);
        }

        @Override
        public long verified(ChannelKey channel) {
            return endpoint.verified(channel);
        }

        @Override
        public int arrived(FrameKey key) {
            life.requireAlive();
            return endpoint.arrived(key);
        }

        @Override
        public int take(FrameKey key) {
            life.requireAlive();
            return endpoint.take(key);
        }

        @Override
        public void release(ChannelKey channel, int slot) {
            life.requireAlive();
            endpoint.release(channel, slot);
        }

        @Override
        public List<LinkTraffic> traffic() {
            return endpoint.traffic();
        }

        @Override
        public String describe() {
            return endpoint.describe();
        }

        @Override
        public void close() {
            life.beforeClosing();
            endpoint.close();
        }
    }

    /** The poller's thread is no rank's: it moves on, and what it says is lost. */
    private record MortalListener(FrameListener listener, ProcessLife life)
            implements FrameListener {
        @Override
        public void onFrame(FrameKey key) {
            whileAlive(() -> listener.onFrame(key));
        }

        @Override
        public void onCredit(ChannelKey channel) {
            whileAlive(() -> listener.onCredit(channel));
        }

        @Override
        public void onPeerClosed(int rank) {
            whileAlive(() -> listener.onPeerClosed(rank));
        }

        @Override
        public void onFailure(DataPlaneException failure) {
            whileAlive(() -> listener.onFailure(failure));
        }

        private void whileAlive(Runnable call) {
            if (!life.isOver()) {
                call.run();
            }
        }
    }
}
