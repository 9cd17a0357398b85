package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.ShardShape;
import org.jspecify.annotations.Nullable;

/**
 * Scratch of one backward of a unit of n rows. Nothing in it outlives the call.
 *
 * @param dModel gradients of norm outputs {@code [n, d]}
 * @param dAttended gradients of attention's output {@code [n, hk/T]} of the widest layer, in the
 *     memory of {@code dModel}, which is not read any more when that is written
 * @param dHidden gradients of what leaves the activation of the MLP {@code [n, f/T]}
 * @param dQueryKeyValue of the unit {@code [n, (h+2g)k/T]}, of the widest layer; null where the
 *     unit's rows can be used in place
 * @param halves room for one rounded gradient at a time, see {@link #rounded}; null where gradients
 *     are kept in F32
 * @param dStream the residual stream's gradient {@code [n', d]}, n' of {@link ShardShape#ownRows};
 *     null where the gradients of outputs or inputs can be used
 */
public record Workspace(
        Tensor dModel,
        Tensor dAttended,
        Tensor dHidden,
        @Nullable Tensor dQueryKeyValue,
        @Nullable Tensor halves,
        @Nullable Tensor dStream) {

    /**
     * Takes the scratch of the largest unit.
     *
     * @param ownStream whether no other stage provides the stream's gradient or wants it
     */
    public static Workspace carve(
            Carver carver, ShardShape shape, BatchShape batch, boolean ownStream) {
        int rows = batch.largestRows();
        int d = shape.width();
        boolean scattered = batch.sliced() && batch.sequences() > 1;
        Tensor widest = carver.matrix(rows, Math.max(d, shape.outputColumns()));
        return new Workspace(
                narrow(widest, d),
                narrow(widest, shape.outputColumns()),
                carver.matrix(rows, shape.hidden()),
                scattered ? carver.matrix(rows, shape.queryKeyValueColumns()) : null,
                shape.kept() == DType.BF16
                        ? carver.factor(DType.BF16, rows, widestRounded(shape))
                        : null,
                ownStream ? carver.matrix(shape.ownRows(rows), d) : null);
    }

    private static int widestRounded(ShardShape shape) {
        int ofBlock = Math.max(shape.hiddenColumns(), shape.queryKeyValueColumns());
        return Math.max(ofBlock, shape.width());
    }

    /**
     * Returns rows in which a gradient that products read is rounded, valid until the next call;
     * null where it stays in F32.
     */
    public @Nullable Tensor rounded(int columns) {
        if (halves == null) {
            return null;
        }
        return new Tensor(
                halves.buffer(),
                halves.offsetBytes(),
                DType.BF16,
                halves.rows(),
                columns,
                Carver.halfStride(columns));
    }

    /** Returns dense rows of fewer columns, or as many, in the same memory. */
    public static Tensor narrow(Tensor wide, int columns) {
        return wide.columns() == columns
                ? wide
                : new Tensor(
                        wide.buffer(),
                        wide.offsetBytes(),
                        wide.type(),
                        wide.rows(),
                        columns,
                        columns);
    }

    public Workspace first(int rows, int own) {
        return new Workspace(
                dModel.rows(0, rows),
                dAttended.rows(0, rows),
                dHidden.rows(0, rows),
                dQueryKeyValue == null ? null : dQueryKeyValue.rows(0, rows),
                halves == null ? null : halves.rows(0, rows),
                dStream == null ? null : dStream.rows(0, own));
    }
}
