package dev.penstock.runtime.model.shape;

/**
 * The heads of a block's attention. Query head a reads key and value head {@code a * keys /
 * queries}, rounded down.
 *
 * @param queries heads of queries, h
 * @param keys heads of keys, and of values, a divisor of {@code queries}
 * @param size columns of a head, k
 * @param norms whether each head of queries and keys is normalised before it is used
 * @param scaledByLayer whether scores of layer l, from 0, are also divided by l + 1
 */
public record HeadDesign(int queries, int keys, int size, boolean norms, boolean scaledByLayer) {
    public HeadDesign {
        if (queries < 1 || keys < 1 || size < 1) {
            throw new IllegalArgumentException(
                    "attention needs sizes of 1 or more, got %d heads, %d of keys, of %d columns"
                            .formatted(queries, keys, size));
        }
        if (queries % keys != 0) {
            throw new IllegalArgumentException(
                    "heads of queries share those of keys in groups of one size: expected a divisor of %d heads, got %d of keys; try %d"
                            .formatted(queries, keys, ModelShape.largestDivisor(queries, keys)));
        }
    }

    /** Returns the columns of all queries, and of what attention makes of them. */
    public int queryColumns() {
        return queries * size;
    }

    /** Returns the columns of all keys; values have as many. */
    public int keyColumns() {
        return keys * size;
    }

    /** Returns the columns of queries, keys and values side by side. */
    public int columns() {
        return queryColumns() + 2 * keyColumns();
    }

    /** Returns the factor of a layer's scores. */
    public double scoreScale(int layer) {
        double scale = 1 / Math.sqrt(size);
        return scaledByLayer ? scale / (layer + 1) : scale;
    }

    /** Returns the part of one of several shards, which divide the heads of keys. */
    HeadDesign part(int shards) {
        return new HeadDesign(queries / shards, keys / shards, size, norms, scaledByLayer);
    }
}
