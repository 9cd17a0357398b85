package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.RowMoments;
import dev.penstock.runtime.model.parameters.NormParameters;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.shape.NormDesign;

/**
 * A norm by the root of the mean square alone (Zhang and Sennrich, arXiv 1910.07467). An infinite
 * input has the moment 0, so its output shows whether the input is finite.
 */
final class RmsNorm implements Norm {
    private final Compute compute;
    private final Parameter gain;
    private final double epsilon;
    private final String inputPlace;
    private final String gradientPlace;

    RmsNorm(Compute compute, NormDesign design, NormParameters parameters) {
        this.compute = compute;
        gain = parameters.gain();
        epsilon = design.epsilon();
        inputPlace = "input of " + parameters.name() + " (forward)";
        gradientPlace = "gradient of " + gain.name() + " (backward)";
    }

    @Override
    public void forward(Tensor x, Tensor y, RowMoments moments) {
        compute.kernels().rmsNorm(x, gain.weight(), y, moments.rstd(), epsilon);
        compute.guard().check(y, inputPlace);
    }

    @Override
    public void backward(Tensor dy, Tensor x, RowMoments moments, Tensor dx, TokenBlocks blocks) {
        compute.kernels().rmsNormBackwardInput(dy, x, gain.weight(), moments.rstd(), dx, true);
        if (!gain.isTrained()) {
            return;
        }
        compute.kernels()
                .rmsNormBackwardWeight(
                        dy, x, moments.rstd(), gain.gradient(), compute.shards().ownRows(blocks));
        compute.guard().checkGradient(gain, gradientPlace);
    }
}
