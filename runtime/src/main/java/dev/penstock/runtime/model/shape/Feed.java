package dev.penstock.runtime.model.shape;

/**
 * A run of a text's tokens that passes through the stages as one slice.
 *
 * @param from index of its first token in the text
 * @param count tokens, at least 1
 * @param position of its first token in the window: keys and values of those before it are kept
 * @param chooses whether the token after it is chosen by what the last stage makes of it
 */
public record Feed(int from, int count, int position, boolean chooses) {
    /** Index of the token after it. */
    public int end() {
        return from + count;
    }
}
