package dev.penstock.runtime.model.shape;

/**
 * A run of a text's tokens that passes through the stages as one slice.
 *
 * @param from index of its first token in the text
 * @param count tokens, at least 1
 * @param position of its first token in the window: keys and values of the tokens before it are
 *     kept
 * @param chooses whether the output of the last stage chooses the token after it
 */
public record Feed(int from, int count, int position, boolean chooses) {
    /** Returns the index of the token after it. */
    public int end() {
        return from + count;
    }
}
