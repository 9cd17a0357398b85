package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.RowMoments;
import dev.penstock.runtime.model.mesh.MeshShards;
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
        MeshShards mesh = compute.shards().mesh();
        if (mesh != null) {
            Tensor parts = mesh.normParts(x.rows());
            compute.kernels().layerNormPart(x, mesh.ownNorms(parts, x.rows()));
            mesh.showNorms(parts);
            compute.kernels()
                    .layerNormOfParts(
                            parts.columns(0, 2 * x.rows()),
                            x,
                            gain.weight(),
                            bias.weight(),
                            y,
                            mean,
                            moments.rstd(),
                            epsilon);
            compute.guard().check(mean, inputPlace);
            return;
        }
        compute.kernels()
                .layerNorm(x, gain.weight(), bias.weight(), y, mean, moments.rstd(), epsilon);
        // whatever makes rstd NaN or infinite has done so to the mean, unless epsilon is zero
        compute.guard().check(mean, inputPlace);
    }

    @Override
    public boolean takesRounded() {
        return compute.joins() && compute.shards().areOne();
    }

    @Override
    public void backward(Tensor dy, Tensor x, RowMoments moments, Tensor dx, TokenBlocks blocks) {
        Tensor mean = requireNonNull(moments.mean());
        MeshShards mesh = compute.shards().mesh();
        if (mesh != null) {
            backwardOnMesh(mesh, dy, x, mean, moments.rstd(), dx, blocks);
            return;
        }
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

    private void backwardOnMesh(
            MeshShards mesh,
            Tensor dy,
            Tensor x,
            Tensor mean,
            Tensor rstd,
            Tensor dx,
            TokenBlocks blocks) {
        Kernels kernels = compute.kernels();
        Tensor parts = mesh.normParts(x.rows());
        kernels.layerNormBackwardPart(
                dy, x, gain.weight(), mean, rstd, mesh.ownNorms(parts, x.rows()));
        mesh.showNorms(parts);
        kernels.layerNormBackwardWeight(
                dy, x, mean, rstd, gain.gradient(), bias.gradient(), blocks);
        kernels.layerNormBackwardOfParts(
                parts.columns(0, 2 * x.rows()), dy, x, gain.weight(), mean, rstd, dx);
        compute.guard().checkGradient(bias, gradientPlace);
    }
}
