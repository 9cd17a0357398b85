package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;

/** Listens to no frame. */
final class Deaf implements FrameListener {
    @Override
    public void onFrame(FrameKey key) {}

    @Override
    public void onCredit(ChannelKey channel) {}

    @Override
    public void onFailure(DataPlaneException failure) {}
}
