package dev.penstock.runtime.inference;

/**
 * How a text went on.
 *
 * @param tokens that were chosen, without prompt and end-of-text token
 */
@SuppressWarnings("ArrayRecordComponent") // a value on its way to the user; nobody compares it
public record Continuation(int[] tokens, End end) {
    /** Why a text ended. */
    public enum End {
        /** It has as many tokens as were asked for. */
        LENGTH,
        /** The model ended it. */
        END_OF_TEXT,
        /** Somebody stopped it, or the pipeline failed. */
        STOPPED
    }
}
