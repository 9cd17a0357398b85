package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.RowMoments;
import dev.penstock.runtime.model.parameters.NormParameters;
import dev.penstock.runtime.model.parameters.Parameter;

/** A layer norm; its moments show whether its input is finite. */
final class LayerNorm {
    private static final double EPSILON = 1e-5;

    private final Compute compute;
    private final Parameter gain;
    private final Parameter bias;
    private final String inputPlace;
    private final String gradientPlace;

    LayerNorm(Compute compute, NormParameters parameters) {
        this.compute = compute;
        gain = parameters.gain();
        bias = parameters.bias();
        inputPlace = "input of " + parameters.name() + " (forward)";
        gradientPlace = "gradient of " + bias.name() + " (backward)";
    }

    void forward(Tensor x, Tensor y, RowMoments moments) {
        compute.kernels()
                .layerNorm(
                        x,
                        gain.weight(),
                        bias.weight(),
                        y,
                        moments.mean(),
                        moments.rstd(),
                        EPSILON);
        compute.guard().check(moments.mean(), inputPlace);
        compute.guard().check(moments.rstd(), inputPlace);
    }

    /**
     * Adds the input gradient to {@code dx}. All tensors are of own rows.
     *
     * @param blocks of all rows
     */
    void backward(Tensor dy, Tensor x, RowMoments moments, Tensor dx, TokenBlocks blocks) {
        compute.kernels()
                .layerNormBackwardInput(dy, x, gain.weight(), moments.mean(), moments.rstd(), dx);
        compute.kernels()
                .layerNormBackwardWeight(
                        dy,
                        x,
                        moments.mean(),
                        moments.rstd(),
                        gain.gradient(),
                        bias.gradient(),
                        compute.shards().ownRows(blocks));
        compute.guard().check(bias.gradient(), gradientPlace);
    }
}
