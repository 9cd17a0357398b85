package dev.penstock.actors.spi;

import java.util.List;
import java.util.OptionalLong;

/**
 * Durable storage of checkpoints. Shards are written first, each complete on disk when {@link
 * #writeShard} returns; {@link #publish} makes the whole set visible at once. A set that was not
 * published is not a checkpoint.
 */
public interface CheckpointStore {
    /**
     * Writes what a rank holds of a stage's state. Called on the shard's thread.
     *
     * @param epoch of the order to write it: a rank that was replaced and still writes must not
     *     meet its successor in one file
     * @param place of the rank: several may hold pieces of one stage
     * @param state at least one tensor
     * @return what the manifest needs to know about the file
     */
    ShardFile writeShard(long step, int epoch, int stage, RankPlace place, List<NamedTensor> state);

    /**
     * Publishes the checkpoint of a step, as written in an epoch, and drops those beyond the
     * retained number.
     */
    void publish(long step, int epoch, List<ShardFile> shards);

    /**
     * The same of a run whose loss is scaled.
     *
     * @param lossScale the scaler's state after that step, see {@link
     *     dev.penstock.actors.precision.LossScaler#text}; empty if the loss is not scaled
     */
    default void publish(long step, int epoch, List<ShardFile> shards, String lossScale) {
        publish(step, epoch, shards);
    }

    /**
     * Removes what was written of a step's checkpoint after one of its shards failed. Called when
     * every rank has answered, so that nobody writes to it any more.
     */
    default void abandon(long step, int epoch) {
        // a store may as well let it lie: it was not published
    }

    /**
     * Finds the newest published checkpoint of an earlier step than this one, which is damaged.
     * Whoever reads it finds out whether it is whole.
     *
     * @return its step; empty if there is none
     */
    default OptionalLong newestBefore(long step) {
        return OptionalLong.empty();
    }

    /**
     * A written shard.
     *
     * @param file name inside the checkpoint's directory
     * @param sha256 lower-case hexadecimal
     */
    record ShardFile(int stage, String file, long bytes, String sha256) {}
}
