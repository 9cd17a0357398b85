package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.ShardShape;
import org.jspecify.annotations.Nullable;

/**
 * What the norms of heads keep of a unit of n rows, with h heads of queries and g of keys on this
 * shard, each of k columns.
 *
 * @param raw queries and keys before the norm {@code [n, (h+g)k]}
 * @param queries reciprocal root of the mean square of row i and head a at i*h + a {@code [1, nh]}
 * @param keys the same of keys {@code [1, ng]}
 */
public record HeadMoments(Tensor raw, Tensor queries, Tensor keys) {
    static @Nullable HeadMoments carve(Carver carver, ShardShape shape, int rows) {
        return shape.model().block().heads().norms()
                ? new HeadMoments(
                        carver.matrix(rows, shape.headColumns() + shape.keyColumns()),
                        carver.matrix(1, rows * shape.heads()),
                        carver.matrix(1, rows * shape.keyHeads()))
                : null;
    }

    HeadMoments first(int rows) {
        return of(0, rows);
    }

    /** Returns what is kept of some rows. */
    public HeadMoments of(int first, int rows) {
        int h = queries.columns() / raw.rows();
        int g = keys.columns() / raw.rows();
        return new HeadMoments(
                raw.rows(first, rows),
                queries.columns(first * h, rows * h),
                keys.columns(first * g, rows * g));
    }
}
