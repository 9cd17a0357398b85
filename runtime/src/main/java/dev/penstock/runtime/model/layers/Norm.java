package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.RowMoments;
import dev.penstock.runtime.model.parameters.NormParameters;
import dev.penstock.runtime.model.shape.NormDesign;

/** A norm over the columns of rows of the residual stream. All tensors are of own rows. */
interface Norm {
    void forward(Tensor x, Tensor y, RowMoments moments);

    /** Returns whether {@code dy} may be rounded. */
    default boolean takesRounded() {
        return false;
    }

    /**
     * Adds the input gradient to {@code dx}, and to those of the parameters.
     *
     * @param blocks of all rows
     */
    void backward(Tensor dy, Tensor x, RowMoments moments, Tensor dx, TokenBlocks blocks);

    static Norm of(Compute compute, NormDesign design, NormParameters parameters) {
        return switch (design.kind()) {
            case LAYER -> new LayerNorm(compute, design, parameters);
            case RMS -> new RmsNorm(compute, design, parameters);
        };
    }
}
