package dev.penstock.runtime.data;

/** An opened source of batches and what is known of it. */
public interface TrainingData extends BatchSource {
    /**
     * Reads the data of a run.
     *
     * @throws DataException with all problems: missing, unreadable, too short, not text
     */
    static TrainingData open(DataSpec spec) {
        return switch (spec.format()) {
            case TEXT, JSONL -> TextCorpus.open(spec);
            case TOKENS -> TokenFile.open(spec);
        };
    }

    /** Whether there is held-out data, so that evaluations can be asked for. */
    boolean hasHeldOut();

    /** Held-out batches until that data ends; as many as one likes where it starts again then. */
    default int heldOutBatches() {
        return Integer.MAX_VALUE;
    }

    /** Training steps until the data begins again or ends, at least 1. */
    long stepsOfEpoch();

    /** Tokens to train on, in all. */
    long trainingTokens();

    /** Tokens held out for validation. */
    long heldOutTokens();

    /**
     * Bytes of text that the targets of the first held-out sequences stand for: what a loss in bits
     * per byte is divided by. Tokens that only part documents stand for none.
     *
     * @param sequences as many as evaluations read, in their order
     */
    long heldOutBytes(long sequences);

    /** What was read, in a line for people. */
    String description();
}
