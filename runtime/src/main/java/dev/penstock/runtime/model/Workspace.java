package dev.penstock.runtime.model;

import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * Scratch of one backward of a unit of n rows. Nothing in it outlives the call.
 *
 * @param dModel gradients of norm outputs and of attention's output {@code [n, d]}
 * @param dHidden gradients of the MLP's hidden layer {@code [n, 4d]}
 * @param dQueryKeyValue of the unit {@code [n, 3d]}; null where the unit's rows can be used in
 *     place
 * @param dStream the residual stream's gradient, on a stage that is first and last {@code [n, d]}
 */
record Workspace(
        Tensor dModel, Tensor dHidden, @Nullable Tensor dQueryKeyValue, @Nullable Tensor dStream) {

    static Workspace carve(Carver carver, GptShape shape, BatchShape batch, StageRole role) {
        int rows = batch.largestRows();
        int d = shape.width();
        boolean scattered = batch.sliced() && batch.sequences() > 1;
        return new Workspace(
                carver.matrix(rows, d),
                carver.matrix(rows, shape.hidden()),
                scattered ? carver.matrix(rows, 3 * d) : null,
                role.first() && role.last() ? carver.matrix(rows, d) : null);
    }

    Workspace first(int rows) {
        return new Workspace(
                dModel.rows(0, rows),
                dHidden.rows(0, rows),
                dQueryKeyValue == null ? null : dQueryKeyValue.rows(0, rows),
                dStream == null ? null : dStream.rows(0, rows));
    }
}
