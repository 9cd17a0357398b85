package dev.penstock.runtime.inference;

import dev.penstock.runtime.model.generation.Sampling;
import java.util.List;
import java.util.OptionalInt;

/**
 * Texts to be continued side by side.
 *
 * @param prompts at least one, each of at least one token
 * @param count maximum tokens to choose for each
 * @param endOfText the token that ends a text early; it is not part of it
 * @param caches whether keys and values of earlier tokens are kept; without them, only time is lost
 */
public record InferenceRequest(
        List<int[]> prompts, int count, Sampling sampling, OptionalInt endOfText, boolean caches) {
    public InferenceRequest {
        prompts = prompts.stream().map(int[]::clone).toList();
        if (prompts.isEmpty() || prompts.stream().anyMatch(prompt -> prompt.length == 0)) {
            throw new IllegalArgumentException(
                    "expected prompts of at least 1 token, got %s"
                            .formatted(prompts.stream().map(prompt -> prompt.length).toList()));
        }
        if (count < 1) {
            throw new IllegalArgumentException("expected a count of 1 token or more, got " + count);
        }
    }

    /** A request with caches, without an end-of-text token. */
    public static InferenceRequest of(List<int[]> prompts, int count, Sampling sampling) {
        return new InferenceRequest(prompts, count, sampling, OptionalInt.empty(), true);
    }
}
