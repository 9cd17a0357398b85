package dev.penstock.runtime.model.shape;

/**
 * The part of the model that one rank holds as a stage.
 *
 * @param stage global stage index
 * @param firstLayer index of its first transformer block in the model
 * @param layers number of its transformer blocks
 * @param first whether it has the embedding
 * @param last whether it has the final norm and the head
 * @param shard which tensor shard of the stage it is, from 0
 * @param shards tensor shards of the stage
 */
public record StageRole(
        int stage, int firstLayer, int layers, boolean first, boolean last, int shard, int shards) {
    StageRole onShard(int index, int of) {
        return new StageRole(stage, firstLayer, layers, first, last, index, of);
    }
}
