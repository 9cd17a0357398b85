package dev.penstock.runtime.model;

/**
 * All that decides what the stages of a run compute.
 *
 * @param seed of the initial parameters; they do not depend on the partition
 */
public record GptSettings(
        GptShape shape,
        StagePartition partition,
        BatchShape batch,
        Precision precision,
        AdamWSettings optimizer,
        long seed) {
    public GptSettings {
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
}
