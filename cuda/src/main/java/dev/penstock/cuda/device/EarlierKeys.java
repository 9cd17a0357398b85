package dev.penstock.cuda.device;

/**
 * Where a block of keys lies that all come before some queries. Keys lie at positions that follow
 * each other, and so do queries.
 *
 * @param distance position of the first query less that of the first key: at least the number of
 *     keys; without a window nothing else depends on it
 */
public record EarlierKeys(AttentionShape shape, int distance) {
    public EarlierKeys {
        if (distance < 0) {
            throw new IllegalArgumentException(
                    "earlier keys: expected a distance of 0 or more, got " + distance);
        }
    }

    /** The first key, counted from the block's first, that a query sees; may be none of them. */
    public int firstKey(int query) {
        return shape.firstKey(distance + query);
    }
}
