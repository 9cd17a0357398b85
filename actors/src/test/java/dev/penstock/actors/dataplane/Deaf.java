package dev.penstock.actors.dataplane;

/** Listens to no frame. */
public final class Deaf implements FrameListener {
    @Override
    public void onFrame(FrameKey key) {}

    @Override
    public void onCredit(ChannelKey channel) {}

    @Override
    public void onFailure(DataPlaneException failure) {}
}
