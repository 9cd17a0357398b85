package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.ShardShape;

/**
 * The activations of a unit of n rows that a block keeps for its backward. Queries, keys and values
 * are kept apart, for the whole micro-batch. Heads and hidden columns are those of this shard, and
 * so are rows of the residual stream and the norms in the sequence parallel form: n' for n of
 * {@link ShardShape#ownRows}.
 *
 * @param norm1 input of attention {@code [n', d]}
 * @param attended heads' outputs side by side {@code [n, d/T]}
 * @param logSumExp of each row and head {@code [n, h/T]}
 * @param middle the residual stream between attention and MLP {@code [n', d]}
 * @param norm2 input of the MLP {@code [n', d]}
 * @param hidden before the GELU {@code [n, 4d/T]}
 * @param activated after the GELU {@code [n, 4d/T]}
 */
public record LayerActivations(
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
        int own = shape.ownRows(rows);
        return new LayerActivations(
                carver.matrix(own, d),
                RowMoments.carve(carver, own),
                carver.matrix(rows, shape.headColumns()),
                carver.matrix(rows, shape.heads()),
                carver.matrix(own, d),
                carver.matrix(own, d),
                RowMoments.carve(carver, own),
                carver.matrix(rows, shape.hidden()),
                carver.matrix(rows, shape.hidden()));
    }

    /**
     * Returns the same memory for a unit of fewer rows, of which the given number are this shard's
     * own.
     */
    LayerActivations first(int rows, int own) {
        return new LayerActivations(
                norm1.rows(0, own),
                moments1.first(own),
                attended.rows(0, rows),
                logSumExp.rows(0, rows),
                middle.rows(0, own),
                norm2.rows(0, own),
                moments2.first(own),
                hidden.rows(0, rows),
                activated.rows(0, rows));
    }
}
