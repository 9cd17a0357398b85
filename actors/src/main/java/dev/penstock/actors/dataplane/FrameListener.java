package dev.penstock.actors.dataplane;

/** Told by the poller's thread; must return at once. */
public interface FrameListener {
    /** The whole tensor lies in its slot: {@link Endpoint#take} will find it. */
    void onFrame(FrameKey key);

    /** The channel has credit again. */
    void onCredit(ChannelKey channel);

    /** The transport broke; nothing more will arrive. */
    void onFailure(DataPlaneException failure);
}
