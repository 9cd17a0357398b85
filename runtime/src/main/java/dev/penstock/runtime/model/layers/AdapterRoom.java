package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Scratch that the low-rank branches of a stage use in turns. They are scaled by a product with a
 * diagonal matrix, which is exact but for the one rounding of each element.
 *
 * @param inner what is between the two matrices of a branch, or its gradient {@code [n, r]}
 * @param scaled the same times the scale {@code [n, r]}
 * @param scale {@code [r, r]}: the scale in its diagonal
 * @param trainingScale the same with the factor of dropout; null without dropout
 * @param dropout of what branches read; null if nothing is ever dropped
 */
public record AdapterRoom(
        Tensor inner,
        Tensor scaled,
        Tensor scale,
        @Nullable Tensor trainingScale,
        @Nullable AdapterDropout dropout) {

    /**
     * Allocates the room; {@link #fill} is to be called before it is used.
     *
     * @param tables holds the scales, which are written once
     * @param rows of the largest unit
     */
    public static AdapterRoom allocate(
            DeviceScope scope,
            DeviceScope tables,
            int rank,
            int rows,
            @Nullable AdapterDropout dropout) {
        return new AdapterRoom(
                scope.tensor("inside of adapters", DType.F32, rows, rank),
                scope.tensor("scaled inside of adapters", DType.F32, rows, rank),
                tables.tensor("scale of adapters", DType.F32, rank, rank),
                dropout == null
                        ? null
                        : tables.tensor("training scale of adapters", DType.F32, rank, rank),
                dropout);
    }

    /** Writes the matrices of the scale. */
    public void fill(double factor) {
        fill(scale, factor);
        if (trainingScale != null) {
            fill(trainingScale, factor * requireNonNull(dropout).scale());
        }
    }

    /** Returns the scale of the current step. */
    Tensor scaleNow() {
        return dropout != null && dropout.isOn() ? requireNonNull(trainingScale) : scale;
    }

    private static void fill(Tensor scale, double factor) {
        int rank = scale.rows();
        float[] matrix = new float[rank * rank];
        for (int i = 0; i < rank; i++) {
            matrix[i * rank + i] = (float) factor;
        }
        scale.write(MemorySegment.ofArray(matrix));
    }
}
