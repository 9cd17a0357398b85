package dev.penstock.runtime.model.shape;

/**
 * A run of a text's tokens that passes through the stages as one slice.
 *
 * @param from index of its first token in the text
 * @param count tokens, at least 1
 * @param position of its first token among those whose keys and values are kept: those of the
 *     tokens before it are there
 * @param place of its first token, counted from the first that was fed; the same as the position
 *     until keys are dropped
 * @param dropped how many of the oldest keys and values make room before it; the others, as many as
 *     its position says, move to their place
 * @param chooses whether the output of the last stage chooses the token after it
 */
public record Feed(int from, int count, int position, int place, int dropped, boolean chooses) {
    /** A feed before which nothing was dropped. */
    public Feed(int from, int count, int position, boolean chooses) {
        this(from, count, position, position, 0, chooses);
    }

    /** Returns the index of the token after it. */
    public int end() {
        return from + count;
    }
}
