package dev.penstock.runtime.model;

import dev.penstock.cuda.device.Tensor;

/** Mean and reciprocal standard deviation of every row, kept by a layer norm; {@code [1, n]}. */
record RowMoments(Tensor mean, Tensor rstd) {
    static RowMoments carve(Carver carver, int rows) {
        return new RowMoments(carver.matrix(1, rows), carver.matrix(1, rows));
    }

    RowMoments first(int rows) {
        return new RowMoments(mean.columns(0, rows), rstd.columns(0, rows));
    }
}
