package dev.penstock.benchmarks;

/**
 * A model to measure, GPT-2's shape or Llama's; the table of tokens is the head's matrix as well.
 *
 * @param keyHeads heads of keys of Llama's shape; 0 for GPT-2's
 * @param hidden columns of the MLP's hidden layer
 */
record TrainingShape(
        String name,
        int layers,
        int width,
        int heads,
        int keyHeads,
        int hidden,
        int context,
        int vocabulary) {
    /** GPT-2's shape. */
    TrainingShape(String name, int layers, int width, int heads, int context, int vocabulary) {
        this(name, layers, width, heads, 0, 4 * width, context, vocabulary);
    }

    /** The keys of the model's family in a configuration. */
    String family() {
        return keyHeads == 0
                ? "family = gpt2"
                : "family = llama, key-heads = %d, hidden = %d, tied = true"
                        .formatted(keyHeads, hidden);
    }

    /** Sequences of a step in one stage, the same number with which the goals were measured. */
    int sequences() {
        return Math.max(1, 1_024 / context);
    }
}
