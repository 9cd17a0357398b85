package dev.penstock.runtime.model;

import java.util.Set;

/**
 * All that decides what the stages of a run compute.
 *
 * @param seed of the initial parameters; they do not depend on the partition
 * @param recomputedBlocks transformer blocks that keep their input alone and run again in the
 *     backward; of no effect in a stage whose backwards come in two parts
 */
public record GptSettings(
        GptShape shape,
        StagePartition partition,
        BatchShape batch,
        Precision precision,
        AdamWSettings optimizer,
        long seed,
        Set<Integer> recomputedBlocks) {
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
    }

    /** Of a run that keeps every block's activations. */
    public GptSettings(
            GptShape shape,
            StagePartition partition,
            BatchShape batch,
            Precision precision,
            AdamWSettings optimizer,
            long seed) {
        this(shape, partition, batch, precision, optimizer, seed, Set.of());
    }
}
