package dev.penstock.runtime.model.shape;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The heads of a block's attention. Query head a reads key and value head {@code a * keys /
 * queries}, rounded down.
 *
 * @param queries heads of queries, h
 * @param keys heads of keys, and of values, a divisor of {@code queries}
 * @param size columns of a head, k
 * @param norms whether each head of queries and keys is normalised before it is used
 * @param scaledByLayer whether scores of layer l, from 0, are also divided by l + 1
 * @param retention what stands in the place of softmax attention; null where nothing does
 */
public record HeadDesign(
        int queries,
        int keys,
        int size,
        boolean norms,
        boolean scaledByLayer,
        @Nullable RetentionDesign retention) {
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
        if (retention != null && keys != queries) {
            throw new IllegalArgumentException(
                    "every head of a retention has keys of its own: expected %d heads of keys, got %d"
                            .formatted(queries, keys));
        }
        if (retention != null && scaledByLayer) {
            throw new IllegalArgumentException(
                    "expected scores that no layer divides, as heads of a retention are normalised");
        }
    }

    /** Heads of softmax attention. */
    public HeadDesign(int queries, int keys, int size, boolean norms, boolean scaledByLayer) {
        this(queries, keys, size, norms, scaledByLayer, null);
    }

    /** Returns the same heads of softmax attention, whose values have as many columns as keys. */
    HeadDesign attending() {
        return retention == null ? this : new HeadDesign(queries, keys, size, norms, scaledByLayer);
    }

    /** Returns the columns of all queries. */
    public int queryColumns() {
        return queries * size;
    }

    /** Returns the columns of all keys. */
    public int keyColumns() {
        return keys * size;
    }

    /** Returns the columns of what leaves the heads. */
    public int outputColumns() {
        return retention == null ? queryColumns() : queries * retention.valueSize();
    }

    /** Returns the columns of queries, keys, values and gates, which lie side by side. */
    public List<Integer> widths() {
        if (retention == null) {
            return List.of(queryColumns(), keyColumns(), keyColumns());
        }
        return retention.gated()
                ? List.of(queryColumns(), keyColumns(), outputColumns(), outputColumns())
                : List.of(queryColumns(), keyColumns(), outputColumns());
    }

    /** Returns the columns of queries, keys and values, and of gates, side by side. */
    public int columns() {
        return widths().stream().mapToInt(Integer::intValue).sum();
    }

    /** Returns the elements of the states of a retention; 0 without one. */
    public int stateColumns() {
        return retention == null ? 0 : size * outputColumns();
    }

    /** Returns the factor of a layer's scores. */
    public double scoreScale(int layer) {
        double scale = 1 / Math.sqrt(size);
        return scaledByLayer ? scale / (layer + 1) : scale;
    }

    /** Returns the part of one of several shards, which divide the heads of keys. */
    HeadDesign part(int shards) {
        return new HeadDesign(
                queries / shards, keys / shards, size, norms, scaledByLayer, retention);
    }
}
