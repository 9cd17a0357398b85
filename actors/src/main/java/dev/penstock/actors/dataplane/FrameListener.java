package dev.penstock.actors.dataplane;

/**
 * Hears what arrives for one rank. Called by the data plane's poller thread, which serves all ranks
 * of the process, and by ranks that hand tensors over themselves: must return at once and never
 * throw.
 */
public interface FrameListener {
    /** The whole tensor lies in its slot: {@link Endpoint#take} will find it. */
    void onFrame(FrameKey key);

    /**
     * Same as {@link #onFrame(FrameKey)}, for those who count.
     *
     * @param bytes of the tensor as it travelled
     */
    default void onFrame(FrameKey key, long bytes) {
        onFrame(key);
    }

    /**
     * The outbound channel had run out of credit and has some again, or more of its kept tensors
     * are verified.
     */
    void onCredit(ChannelKey channel);

    /**
     * A peer closed its endpoint in good order: what it sent before has arrived, nothing more will.
     */
    default void onPeerClosed(int rank) {}

    /**
     * The transport broke, or a peer vanished without closing; nothing more will arrive. Told once;
     * every later offer answers {@link OfferResult.Failed}.
     */
    void onFailure(DataPlaneException failure);
}
