package dev.penstock.runtime.inference;

import dev.penstock.runtime.model.generation.Sampling;
import java.util.OptionalInt;

/**
 * A text to be continued beside others that come and go.
 *
 * @param prompt at least one token, all of the model's vocabulary
 * @param count maximum tokens to choose, at least 1
 * @param number of the text among those of its request: texts of one seed continue differently. It
 *     has the tokens of the prompt with this number in an {@link InferenceRequest}
 * @param endOfText the token that ends the text early; it is not part of it
 * @param likeliest how many of the likeliest tokens to tell beside each chosen one, with their
 *     log-probabilities; empty if none of these is wanted
 */
public record TextRequest(
        int[] prompt,
        int count,
        Sampling sampling,
        int number,
        OptionalInt endOfText,
        OptionalInt likeliest) {
    public TextRequest {
        if (prompt.length == 0 || count < 1) {
            throw new IllegalArgumentException(
                    "expected a prompt and a count of 1 token or more, got %d and %d"
                            .formatted(prompt.length, count));
        }
        prompt = prompt.clone();
    }

    /** One that wants no log-probabilities. */
    public TextRequest(
            int[] prompt, int count, Sampling sampling, int number, OptionalInt endOfText) {
        this(prompt, count, sampling, number, endOfText, OptionalInt.empty());
    }
}
