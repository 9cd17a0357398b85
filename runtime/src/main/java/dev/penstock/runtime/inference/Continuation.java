package dev.penstock.runtime.inference;

/**
 * The continuation of a text.
 *
 * @param tokens that were chosen, without prompt and end-of-text token
 */
public record Continuation(int[] tokens, End end) {
    /** The reason why a text ended. */
    public enum End {
        /** It has as many tokens as were requested. */
        LENGTH,
        /** The model ended it. */
        END_OF_TEXT,
        /** It was stopped from outside, or the pipeline failed. */
        STOPPED
    }
}
