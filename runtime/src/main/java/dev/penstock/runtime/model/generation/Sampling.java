package dev.penstock.runtime.model.generation;

/**
 * The settings by which the next token is chosen.
 *
 * @param temperature divides the logits; 0 always takes the most likely token
 * @param topK only the k most likely tokens; 0 for all
 * @param topP only the most likely tokens that together reach this probability; 1 for all
 * @param seed the same seed, prompt and weights give the same text
 */
public record Sampling(double temperature, int topK, double topP, long seed) {
    public Sampling {
        if (!(temperature >= 0) || topK < 0 || !(topP > 0) || topP > 1) {
            throw new IllegalArgumentException(
                    "sampling needs a temperature of 0 or more, top-k of 0 or more and top-p in (0, 1], got %s, %d, %s"
                            .formatted(temperature, topK, topP));
        }
    }

    /** Always takes the most likely token. */
    public static Sampling greedy() {
        return new Sampling(0, 0, 1, 0);
    }
}
