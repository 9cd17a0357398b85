package dev.penstock.runtime.config;

/**
 * Section {@code parallel}: how many ranks share what a pipeline alone would do. A run has as many
 * ranks as {@code pipeline.stages} x tensor x context x data.
 *
 * @param tensor shards of every stage's matrices (Shoeybi et al., Megatron-LM, section 3)
 * @param context parts of every sequence
 * @param data copies of the whole, which share the micro-batches of a step
 */
public record ParallelSection(
        @Setting(
                        is = "1",
                        range = "[1, )",
                        doc = "tensor shards of every stage, each on a rank of its own")
                int tensor,
        @Setting(
                        is = "1",
                        range = "[1, )",
                        doc = "parts of every sequence, each on ranks of its own")
                int context,
        @Setting(
                        is = "1",
                        range = "[1, )",
                        doc = "replicas of the pipeline, which share a step's micro-batches")
                int data) {}
