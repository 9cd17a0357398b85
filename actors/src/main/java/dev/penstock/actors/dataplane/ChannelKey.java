package dev.penstock.actors.dataplane;

/**
 * A direction of tensors into a stage; credits are counted per channel. Where replicas do each
 * other's micro-batches, every pair of ranks of the two stages has one; where a stage has more
 * shards than the other, every shard of the one with more.
 *
 * @param stage the receiving stage
 * @param fromStage the sending stage
 * @param fromPeer the replica whose rank sends; 0 where each keeps to itself
 * @param toPeer the replica whose rank receives; 0 where each keeps to itself. Of shards: the place
 *     among those to which the same shard sends
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

    /** The same without who of the stages sends and receives. */
    public ChannelKey ofStages() {
        return new ChannelKey(kind, fromStage, stage);
    }

    /** Inside a replica. */
    public ChannelKey(FrameKind kind, int fromStage, int stage) {
        this(kind, fromStage, stage, 0, 0);
    }
}
