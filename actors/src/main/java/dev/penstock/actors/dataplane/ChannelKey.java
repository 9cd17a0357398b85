package dev.penstock.actors.dataplane;

/**
 * A direction of tensors into a stage; credits are counted per channel. Where replicas do each
 * other's micro-batches, every pair of ranks of the two stages has one.
 *
 * @param stage the receiving stage
 * @param fromStage the sending stage
 * @param fromPeer the replica whose rank sends; 0 where each keeps to itself
 * @param toPeer the replica whose rank receives; 0 where each keeps to itself
 */
public record ChannelKey(FrameKind kind, int fromStage, int stage, int fromPeer, int toPeer) {
    /** The most replicas that have channels of their own. */
    public static final int MOST_PEERS = 1 << 12;

    public ChannelKey {
        if (Math.min(fromPeer, toPeer) < 0 || Math.max(fromPeer, toPeer) >= MOST_PEERS) {
            throw new IllegalArgumentException(
                    "channels join replicas 0 to %d, got %d and %d"
                            .formatted(MOST_PEERS - 1, fromPeer, toPeer));
        }
    }

    /** Inside a replica. */
    public ChannelKey(FrameKind kind, int fromStage, int stage) {
        this(kind, fromStage, stage, 0, 0);
    }
}
