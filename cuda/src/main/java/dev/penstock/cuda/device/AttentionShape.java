package dev.penstock.cuda.device;

/**
 * The heads of an attention. Several heads of queries may share the keys and values of one key head
 * (grouped queries): head a of the queries uses key head {@code a * keyHeads / heads}. In a row,
 * heads lie side by side, and queries, keys and values after each other:
 *
 * <pre>
 *   4 heads, 2 key heads:   q0 q1 q2 q3  k0 k1  v0 v1       q0 and q1 use k0 and v0
 * </pre>
 *
 * @param heads of queries
 * @param keyHeads of keys and of values; a divisor of {@code heads}
 * @param headSize columns of a head
 * @param window how many keys a query sees at most, its own included: position i sees those from
 *     {@code i - window + 1} to i; {@link #NO_WINDOW} for all up to its own
 * @param scale factor of the scores {@code q . k}, above 0
 * @param bidirectional whether a query also sees the keys behind its own, to the end of its
 *     sequence: units then have whole sequences, as in BERT
 */
public record AttentionShape(
        int heads, int keyHeads, int headSize, int window, double scale, boolean bidirectional) {
    /** All keys up to a query's own are seen. */
    public static final int NO_WINDOW = Integer.MAX_VALUE;

    /** The widest heads that GPUs attend with. */
    public static final int MOST_COLUMNS_ON_GPU = 128;

    public AttentionShape {
        if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0) {
            throw new IllegalArgumentException(
                    "attention: expected heads that the key heads divide, got %d heads and %d key heads"
                            .formatted(heads, keyHeads));
        }
        if (headSize < 1 || window < 1 || !(scale > 0 && scale < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "attention: expected a head size and a window of 1 or more and a finite scale above 0, got %d, %d and %s"
                            .formatted(headSize, window, scale));
        }
        if (bidirectional && window != NO_WINDOW) {
            throw new IllegalArgumentException(
                    "attention: expected no window where queries see both ways, got " + window);
        }
    }

    /** Heads whose queries see nothing behind their own position. */
    public AttentionShape(int heads, int keyHeads, int headSize, int window, double scale) {
        this(heads, keyHeads, headSize, window, scale, false);
    }

    /**
     * Heads that all have their own keys and see everything up to their own position, scores
     * divided by the root of the head's size: as in GPT-2.
     *
     * @param width columns of all heads together
     */
    public static AttentionShape dense(int heads, int width) {
        if (heads < 1 || width % heads != 0) {
            throw new IllegalArgumentException(
                    "attention: expected a width that %d heads divide, got %d"
                            .formatted(heads, width));
        }
        int headSize = width / heads;
        return new AttentionShape(heads, heads, headSize, NO_WINDOW, 1 / Math.sqrt(headSize));
    }

    /** Columns of all queries, and of the result. */
    public int queryColumns() {
        return heads * headSize;
    }

    /** Columns of all keys, and of all values. */
    public int keyColumns() {
        return keyHeads * headSize;
    }

    /** Columns of queries, keys and values. */
    public int columns() {
        return (heads + 2 * keyHeads) * headSize;
    }

    /** Heads of queries that share a key head. */
    public int group() {
        return heads / keyHeads;
    }

    /** The key head that a head of queries uses. */
    public int keyHeadOf(int head) {
        return head / group();
    }

    /** Returns the same heads with queries that see all keys of their sequences. */
    public AttentionShape bothWays() {
        return new AttentionShape(heads, keyHeads, headSize, window, scale, true);
    }

    /**
     * End of the keys that the query at a position sees.
     *
     * @param tokens end of the unit in its sequence
     */
    public int endKey(int position, int tokens) {
        return bidirectional ? tokens : position + 1;
    }

    /** Position of the first key that the query at a position sees; at least 0. */
    public int firstKey(int position) {
        return Math.max(0, position - window + 1);
    }
}
