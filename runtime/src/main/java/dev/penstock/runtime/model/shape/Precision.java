package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.DType;

/** The type in which the factors of matrix products are multiplied. Everything else is F32. */
public enum Precision {
    /** Single precision throughout. */
    FLOAT32(DType.F32),
    /**
     * Factors are rounded to bfloat16; sums are F32. On a GPU this holds inside attention too: of
     * queries, keys, values, probabilities and their gradients where they are multiplied. The
     * master weights and the optimizer stay F32; a rounded copy of the matrices is refreshed after
     * every update.
     */
    BF16(DType.BF16);

    private final DType multiply;

    Precision(DType multiply) {
        this.multiply = multiply;
    }

    public DType multiply() {
        return multiply;
    }
}
