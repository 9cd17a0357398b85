package dev.penstock;

/**
 * How a text is to be continued.
 *
 * @param tokens to choose at most, at least 1
 * @param temperature divides the logits; 0 always takes the most likely token
 * @param topK only the k most likely tokens; 0 for all
 * @param topP only the most likely tokens that together reach this probability; 1 for all
 * @param seed the same seed, prompt and weights give the same text
 */
public record Generation(int tokens, double temperature, int topK, double topP, long seed) {
    /**
     * @throws IllegalArgumentException for numbers out of range
     */
    public Generation {
        if (tokens < 1 || !(temperature >= 0) || topK < 0 || !(topP > 0) || topP > 1) {
            throw new IllegalArgumentException(
                    "expected 1 token or more, a temperature of 0 or more, a top-k of 0 or more and a top-p in (0, 1], got %d, %s, %d, %s"
                            .formatted(tokens, temperature, topK, topP));
        }
    }

    /** So many tokens, always the most likely one. */
    public static Generation greedy(int tokens) {
        return new Generation(tokens, 0, 0, 1, 0);
    }

    /** So many tokens, drawn as the model weighs them, by the seed that the command line has. */
    public static Generation of(int tokens) {
        return new Generation(tokens, 1, 0, 1, 42);
    }

    /** The same with another temperature. */
    public Generation temperature(double newTemperature) {
        return new Generation(tokens, newTemperature, topK, topP, seed);
    }

    /** The same with only the k most likely tokens. */
    public Generation topK(int newTopK) {
        return new Generation(tokens, temperature, newTopK, topP, seed);
    }

    /** The same with only the most likely tokens that together reach a probability. */
    public Generation topP(double newTopP) {
        return new Generation(tokens, temperature, topK, newTopP, seed);
    }

    /** The same with another seed. */
    public Generation seed(long newSeed) {
        return new Generation(tokens, temperature, topK, topP, newSeed);
    }
}
