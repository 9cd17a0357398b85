package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Keeps what it was told. */
final class RecordingListener implements FrameListener {
    final Queue<FrameKey> frames = new ConcurrentLinkedQueue<>();
    final Queue<ChannelKey> credits = new ConcurrentLinkedQueue<>();
    final Queue<Integer> closedPeers = new ConcurrentLinkedQueue<>();
    final Queue<DataPlaneException> failures = new ConcurrentLinkedQueue<>();

    @Override
    public void onFrame(FrameKey key) {
        frames.add(key);
    }

    @Override
    public void onCredit(ChannelKey channel) {
        credits.add(channel);
    }

    @Override
    public void onPeerClosed(int rank) {
        closedPeers.add(rank);
    }

    @Override
    public void onFailure(DataPlaneException failure) {
        failures.add(failure);
    }
}
