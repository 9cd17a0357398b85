package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;

/** Mean and reciprocal standard deviation of every row, kept by a layer norm; {@code [1, n]}. */
public record RowMoments(Tensor mean, Tensor rstd) {
    static RowMoments carve(Carver carver, int rows) {
        return new RowMoments(carver.matrix(1, rows), carver.matrix(1, rows));
    }

    RowMoments first(int rows) {
        return new RowMoments(mean.columns(0, rows), rstd.columns(0, rows));
    }
}
