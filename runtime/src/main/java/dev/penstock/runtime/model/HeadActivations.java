package dev.penstock.runtime.model;

import dev.penstock.cuda.device.Tensor;

/**
 * What the head keeps of a unit.
 *
 * @param normed input of the logits {@code [n, d]}
 */
record HeadActivations(Tensor normed, RowMoments moments) {
    static HeadActivations carve(Carver carver, ShardShape shape, int rows) {
        return new HeadActivations(
                carver.matrix(rows, shape.width()), RowMoments.carve(carver, rows));
    }

    HeadActivations first(int rows) {
        return new HeadActivations(normed.rows(0, rows), moments.first(rows));
    }
}
