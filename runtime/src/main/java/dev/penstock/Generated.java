package dev.penstock;

import java.util.List;

/**
 * The continuation of a text.
 *
 * @param text without the prompt
 * @param tokens that were chosen
 * @param ended whether the model ended it; otherwise it has as many tokens as were asked for, or
 *     was stopped
 */
public record Generated(String text, List<Integer> tokens, boolean ended) {
    public Generated {
        tokens = List.copyOf(tokens);
    }
}
