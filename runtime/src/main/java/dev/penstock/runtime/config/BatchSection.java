package dev.penstock.runtime.config;

/**
 * Section {@code batch}: how much one step reads.
 *
 * @param sequences sequences of a step, a multiple of {@code microBatches}
 * @param microBatches parts that follow each other through the pipeline
 */
public record BatchSection(
        @Setting(
                        is = "8",
                        range = "[1, )",
                        doc = "sequences of a step, a multiple of batch.micro-batches")
                int sequences,
        @Setting(
                        is = "8",
                        range = "[1, )",
                        doc = "parts of a step that follow each other through the pipeline")
                int microBatches) {

    /** Sequences of one micro-batch. */
    public int sequencesPerMicroBatch() {
        return sequences / microBatches;
    }
}
