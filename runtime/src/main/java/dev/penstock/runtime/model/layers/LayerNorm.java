package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.RowMoments;
import dev.penstock.runtime.model.parameters.NormParameters;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.shape.NormDesign;

/** A layer norm; its means show whether its input is finite. */
final class LayerNorm implements Norm {
    private final Compute compute;
    private final Parameter gain;
    private final Parameter bias;
    private final double epsilon;
    private final String inputPlace;
    private final String gradientPlace;

    LayerNorm(Compute compute, NormDesign design, NormParameters parameters) {
        this.compute = compute;
        gain = parameters.gain();
        bias = requireNonNull(parameters.bias());
        epsilon = design.epsilon();
        inputPlace = "input of " + parameters.name() + " (forward)";
        gradientPlace = "gradient of " + bias.name() + " (backward)";
    }

    @Override
    public void forward(Tensor x, Tensor y, RowMoments moments) {
        Tensor mean = requireNonNull(moments.mean());
        compute.kernels()
                .layerNorm(x, gain.weight(), bias.weight(), y, mean, moments.rstd(), epsilon);
        // whatever makes rstd NaN or infinite has done so to the mean, unless epsilon is zero
        compute.guard().check(mean, inputPlace);
    }

    @Override
    public void backward(Tensor dy, Tensor x, RowMoments moments, Tensor dx, TokenBlocks blocks) {
        Tensor mean = requireNonNull(moments.mean());
        if (!gain.isTrained()) {
            compute.kernels()
                    .layerNormBackwardInput(dy, x, gain.weight(), mean, moments.rstd(), dx);
            return;
        }
        compute.kernels()
                .layerNormBackward(
                        dy,
                        x,
                        gain.weight(),
                        mean,
                        moments.rstd(),
                        dx,
                        gain.gradient(),
                        bias.gradient(),
                        compute.shards().ownRows(blocks));
        compute.guard().checkGradient(bias, gradientPlace);
    }
}
