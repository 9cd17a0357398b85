package dev.penstock.runtime.model;

import dev.penstock.cuda.device.Tensor;

/**
 * What a block keeps of a unit of n rows for its backward. Queries, keys and values are kept apart,
 * for the whole micro-batch. Heads and hidden columns are those of this shard.
 *
 * @param norm1 input of attention {@code [n, d]}
 * @param attended heads' outputs side by side {@code [n, d/T]}
 * @param logSumExp of each row and head {@code [n, h/T]}
 * @param middle the residual stream between attention and MLP {@code [n, d]}
 * @param norm2 input of the MLP {@code [n, d]}
 * @param hidden before the GELU {@code [n, 4d/T]}
 * @param activated after the GELU {@code [n, 4d/T]}
 */
record LayerActivations(
        Tensor norm1,
        RowMoments moments1,
        Tensor attended,
        Tensor logSumExp,
        Tensor middle,
        Tensor norm2,
        RowMoments moments2,
        Tensor hidden,
        Tensor activated) {

    static LayerActivations carve(Carver carver, ShardShape shape, int rows) {
        int d = shape.width();
        return new LayerActivations(
                carver.matrix(rows, d),
                RowMoments.carve(carver, rows),
                carver.matrix(rows, shape.headColumns()),
                carver.matrix(rows, shape.heads()),
                carver.matrix(rows, d),
                carver.matrix(rows, d),
                RowMoments.carve(carver, rows),
                carver.matrix(rows, shape.hidden()),
                carver.matrix(rows, shape.hidden()));
    }

    LayerActivations first(int rows) {
        return new LayerActivations(
                norm1.rows(0, rows),
                moments1.first(rows),
                attended.rows(0, rows),
                logSumExp.rows(0, rows),
                middle.rows(0, rows),
                norm2.rows(0, rows),
                moments2.first(rows),
                hidden.rows(0, rows),
                activated.rows(0, rows));
    }
}
