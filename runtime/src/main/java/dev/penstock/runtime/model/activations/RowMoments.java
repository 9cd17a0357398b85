package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.NormDesign;
import org.jspecify.annotations.Nullable;

/**
 * What a norm keeps of every row, each {@code [1, n]}.
 *
 * @param mean null where the norm does not subtract it
 * @param rstd reciprocal of the standard deviation, or of the root of the mean square
 */
public record RowMoments(@Nullable Tensor mean, Tensor rstd) {
    static RowMoments carve(Carver carver, NormDesign norm, int rows) {
        boolean centred = norm.kind() == NormDesign.Kind.LAYER;
        return new RowMoments(centred ? carver.matrix(1, rows) : null, carver.matrix(1, rows));
    }

    RowMoments first(int rows) {
        return new RowMoments(mean == null ? null : mean.columns(0, rows), rstd.columns(0, rows));
    }
}
