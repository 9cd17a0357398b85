package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.TransformActivations;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.parameters.TransformParameters;
import dev.penstock.runtime.model.shape.BlockDesign;

/**
 * The layer between the last norm and the logits of a model that predicts hidden words: {@code
 * norm(gelu(x dense + bias))}. All shards compute all of it, of own rows.
 */
final class HeadTransform {
    private final Kernels kernels;
    private final TensorShards shards;
    private final Linear dense;
    private final Norm norm;
    private final Gelu form;

    HeadTransform(Compute compute, BlockDesign design, TransformParameters parameters) {
        kernels = compute.kernels();
        shards = compute.shards();
        dense = new Linear(compute, parameters.dense(), true);
        norm = Norm.of(compute, design.norm(), parameters.norm());
        form = design.activation() == BlockDesign.Activation.GELU_TANH ? Gelu.TANH : Gelu.EXACT;
    }

    void forward(Tensor x, TransformActivations a) {
        dense.multiply(x, a.hidden());
        kernels.biasGelu(a.hidden(), requireNonNull(dense.bias()), a.activated(), form);
        norm.forward(a.activated(), a.normed(), a.moments());
    }

    /**
     * Adds to the gradients of its parameters.
     *
     * @param dy gradient of the output on entry, of {@code x} on return
     * @param room for another gradient of own rows
     * @param blocks of all rows
     */
    void backward(
            Tensor x,
            TransformActivations a,
            Tensor dy,
            Tensor room,
            Workspace work,
            TokenBlocks blocks) {
        kernels.zero(room);
        norm.backward(dy, a.activated(), a.moments(), room, blocks);
        kernels.geluBackward(a.hidden(), room, form);
        TokenBlocks own = shards.ownRows(blocks);
        Tensor dHidden = dense.backwardBias(room, work, own);
        dense.backwardWeight(x, dHidden, own);
        dense.backwardInput(dHidden, dy);
    }
}
