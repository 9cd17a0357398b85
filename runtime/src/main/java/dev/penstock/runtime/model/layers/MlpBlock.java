package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.parameters.LayerParameters;
import dev.penstock.runtime.model.shape.BlockDesign;

/**
 * The second half of a transformer block: {@code y = middle + proj(activation(fc(norm(middle))))}.
 */
final class MlpBlock {
    private final Compute compute;
    private final Kernels kernels;
    private final Norm norm;
    private final Residual residual;
    private final boolean normTrained;
    private final ColumnLinear hidden;
    private final RowLinear output;
    private final Activation activation;

    /** Whether the gradient of the norm's output is rounded. */
    private final boolean roundsNorm;

    MlpBlock(Compute compute, BlockDesign design, LayerParameters parameters) {
        this.compute = compute;
        kernels = compute.kernels();
        norm = Norm.of(compute, design.norm(), parameters.norm2());
        residual = Residual.of(kernels, design);
        normTrained = parameters.norm2().gain().isTrained();
        hidden = new ColumnLinear(compute, parameters.hidden());
        roundsNorm = hidden.joins() && norm.takesRounded() && !residual.ofNorm();
        output = new RowLinear(compute, parameters.mlpOutput());
        activation = Activation.of(compute, design.activation(), hidden, output.joins());
    }

    void forward(LayerActivations a, Tensor y) {
        activate(a);
        output.multiplyAndAdd(a.activated(), residual.of(a.middle(), a.norm2()), y);
    }

    /**
     * Computes everything of the forward that a backward reads: {@code a.activated}, and what leads
     * to it.
     */
    void activate(LayerActivations a) {
        norm.forward(a.middle(), a.norm2(), a.moments2());
        activation.forward(hidden.gather(a.norm2()), a.hidden(), a.activated());
    }

    /**
     * @param dStream the gradient of {@code y} on entry, of {@code middle} on return if anybody
     *     needs that
     * @param goesOn whether anybody does
     */
    void backward(
            LayerActivations a,
            Tensor dStream,
            Workspace work,
            TokenBlocks blocks,
            boolean goesOn) {
        Tensor dOutput = output.outputGradient(dStream);
        Tensor dActivated = activation.in(work.dHidden());
        output.backward(
                a.activated(), dOutput, dActivated, activation.gradient(a.hidden()), work, blocks);
        Tensor dHidden = activation.backward(a.hidden(), dActivated, work, blocks);
        if (!goesOn && !normTrained) {
            hidden.backwardWeight(a.norm2(), dHidden, blocks);
            return;
        }
        Tensor dNorm = hidden.backward(a.norm2(), dHidden, dNormed(work), blocks);
        residual.backward(dNorm, dStream);
        norm.backward(dNorm, a.middle(), a.moments2(), dStream, blocks);
    }

    private Tensor dNormed(Workspace work) {
        return roundsNorm ? compute.keptIn(work.dModel()) : work.dModel();
    }

    /**
     * Same as {@link #backward} without the products for the weights; keeps what they need where
     * the space is no longer used: the gradient of the hidden layer in {@code a.hidden}.
     *
     * @param keptOutputGradient receives the gradient of the branch's output
     */
    void backwardInput(
            LayerActivations a,
            Tensor dStream,
            Tensor keptOutputGradient,
            Workspace work,
            TokenBlocks blocks,
            boolean goesOn) {
        Tensor dOutput = output.outputGradient(dStream);
        kernels.copy(dOutput, compute.keptIn(keptOutputGradient));
        Tensor dActivated = activation.in(work.dHidden());
        var _ =
                output.backwardInput(
                        dOutput, dActivated, activation.gradient(a.hidden()), work, blocks);
        Tensor dHidden = activation.backward(a.hidden(), dActivated, work, blocks);
        if (!dHidden.equals(a.hidden())) {
            kernels.copy(dHidden, compute.keptIn(a.hidden()));
        }
        if (!goesOn && !normTrained) {
            return;
        }
        Tensor dNorm = hidden.backwardInput(dHidden, dNormed(work));
        residual.backward(dNorm, dStream);
        norm.backward(dNorm, a.middle(), a.moments2(), dStream, blocks);
    }

    /** Computes the products that {@link #backwardInput} left out. */
    void backwardWeight(LayerActivations a, Tensor keptOutputGradient, TokenBlocks blocks) {
        output.backwardWeight(a.activated(), compute.keptIn(keptOutputGradient), blocks);
        hidden.backwardWeight(a.norm2(), compute.keptIn(a.hidden()), blocks);
    }
}
