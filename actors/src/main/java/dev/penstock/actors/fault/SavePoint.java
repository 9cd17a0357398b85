package dev.penstock.actors.fault;

/**
 * The points between which a checkpoint gets onto the disk, in their order. A process that ends at
 * any of them leaves the checkpoints that exist as they are.
 */
public enum SavePoint {
    /** Half of a shard's bytes are written. */
    SHARD_HALF_WRITTEN,
    /** All bytes of a shard are written, none is flushed. */
    SHARD_WRITTEN,
    /** A shard is flushed; the set has no manifest. */
    SHARD_FLUSHED,
    /** The manifest is flushed beside the shards; the set is not renamed. */
    MANIFEST_WRITTEN,
    /** A set of the same step was moved aside; the new one is not in its place. */
    OLD_SET_ASIDE,
    /** The set has its name; older ones are not removed. */
    RENAMED
}
