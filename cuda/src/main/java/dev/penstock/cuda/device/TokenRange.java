package dev.penstock.cuda.device;

/**
 * Which tokens the rows of a table, or the columns of logits, stand for: as many from {@code first}
 * on as there are rows or columns. Tensor shards divide the vocabulary among them.
 *
 * @param vocabulary tokens that exist; others are refused, those of other shards are not
 */
public record TokenRange(int first, int vocabulary) {
    public TokenRange {
        if (first < 0 || first > vocabulary) {
            throw new IllegalArgumentException(
                    "expected a first token of 0 to %d, got %d".formatted(vocabulary, first));
        }
    }

    /** Every token. */
    public static TokenRange all(int vocabulary) {
        return new TokenRange(0, vocabulary);
    }

    /**
     * Row of a token.
     *
     * @param rows of the table
     * @return -1 if another shard has the token
     */
    public int row(int token, int rows) {
        int row = token - first;
        return row < rows ? Math.max(-1, row) : -1;
    }
}
