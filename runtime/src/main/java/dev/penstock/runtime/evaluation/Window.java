package dev.penstock.runtime.evaluation;

/**
 * A run of tokens of which a model reads all but the last one, from position 0, and whose last ones
 * it is to guess, each from those before it.
 *
 * @param row tokens of which it is a part; shared, never changed
 * @param from index of its first token
 * @param count tokens, at least 2: one more than the model reads
 * @param targets how many of the last tokens count, 1 to {@code count - 1}
 */
public record Window(int[] row, int from, int count, int targets) {
    public Window {
        if (from < 0 || count < 2 || from + count > row.length || targets < 1 || targets >= count) {
            throw new IllegalArgumentException(
                    "a window of %d tokens from %d on, of which %d count, in a row of %d"
                            .formatted(count, from, targets, row.length));
        }
    }

    /** Returns how many tokens the model reads. */
    public int inputs() {
        return count - 1;
    }

    /** Returns a token, counted in the window. */
    public int token(int index) {
        return row[from + index];
    }
}
