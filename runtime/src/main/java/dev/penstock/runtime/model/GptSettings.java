package dev.penstock.runtime.model;

import dev.penstock.actors.spi.RankPlace;

import java.util.Set;

/**
 * All that decides what the stages of a run compute.
 *
 * @param seed of the initial parameters; they do not depend on the partition
 * @param recomputedBlocks transformer blocks that keep their input alone and run again in the
 *     backward; of no effect in a stage whose backwards come in two parts
 * @param tensorShards how many ranks compute a stage together, each with its part of the heads, of
 *     the hidden layer and of the vocabulary
 */
public record GptSettings(
        GptShape shape,
        StagePartition partition,
        BatchShape batch,
        Precision precision,
        AdamWSettings optimizer,
        long seed,
        Set<Integer> recomputedBlocks,
        int tensorShards) {
    public GptSettings {
        recomputedBlocks = Set.copyOf(recomputedBlocks);
        if (partition.layers() != shape.layers()) {
            throw new IllegalArgumentException(
                    "the partition %s holds %d layers, but the model has %d"
                            .formatted(
                                    partition.layersPerStage(),
                                    partition.layers(),
                                    shape.layers()));
        }
        if (batch.context() != shape.context()) {
            throw new IllegalArgumentException(
                    "the slices %s hold %d tokens, but the model's context is %d"
                            .formatted(batch.sliceLengths(), batch.context(), shape.context()));
        }
        if (tensorShards < 1 || shape.heads() % tensorShards != 0) {
            throw new IllegalArgumentException(
                    "attention heads are divided among the tensor shards: expected a divisor of %d heads, got %d shards; try %d"
                            .formatted(
                                    shape.heads(),
                                    tensorShards,
                                    GptShape.largestDivisor(
                                            shape.heads(), Math.max(1, tensorShards))));
        }
        if (shape.vocabulary() < tensorShards) {
            throw new IllegalArgumentException(
                    "every tensor shard holds tokens: expected a vocabulary of %d or more, got %d"
                            .formatted(tensorShards, shape.vocabulary()));
        }
    }

    /** What a shard of a stage holds of the model. */
    ShardShape shape(StageRole role) {
        return new ShardShape(shape, role.shard(), tensorShards);
    }

    /** What a rank holds of the model as a stage. */
    StageRole role(int stage, RankPlace place) {
        return partition.role(stage).onShard(place.tensor());
    }

    /** Of a run that keeps every block's activations, on whole stages. */
    public GptSettings(
            GptShape shape,
            StagePartition partition,
            BatchShape batch,
            Precision precision,
            AdamWSettings optimizer,
            long seed) {
        this(shape, partition, batch, precision, optimizer, seed, Set.of(), 1);
    }
}
