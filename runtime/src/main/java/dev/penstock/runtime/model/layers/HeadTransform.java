package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.TransformActivations;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.parameters.TransformParameters;
import dev.penstock.runtime.model.shape.BlockDesign;
import org.jspecify.annotations.Nullable;

/**
 * The layer between the last norm and the logits. Of a model that predicts hidden words it is
 * {@code norm(gelu(x dense + bias))}, of one that classifies {@code dropout(tanh(x dense + bias))}.
 * All shards compute all of it, of own rows.
 */
final class HeadTransform {
    private final Kernels kernels;
    private final TensorShards shards;
    private final Linear dense;
    private final @Nullable Norm norm;
    private final Gelu form;
    private final @Nullable StreamDropout dropout;
    private final @Nullable DropoutMask mask;

    HeadTransform(Compute compute, BlockDesign design, TransformParameters parameters) {
        kernels = compute.kernels();
        shards = compute.shards();
        dense = new Linear(compute, parameters.dense(), true);
        norm =
                parameters.norm() == null
                        ? null
                        : Norm.of(compute, design.norm(), parameters.norm());
        form = design.activation() == BlockDesign.Activation.GELU_TANH ? Gelu.TANH : Gelu.EXACT;
        dropout = norm == null ? compute.dropout() : null;
        mask = dropout == null ? null : dropout.mask("classifier");
    }

    void forward(Tensor x, TransformActivations a) {
        dense.multiply(x, a.hidden());
        if (norm == null) {
            kernels.biasTanh(a.activated(), requireNonNull(dense.bias()));
            kernels.copy(a.activated(), a.normed());
            drop(a.normed());
            return;
        }
        kernels.biasGelu(a.hidden(), requireNonNull(dense.bias()), a.activated(), form);
        norm.forward(a.activated(), a.normed(), a.moments());
    }

    private void drop(Tensor rows) {
        if (dropout != null && mask != null) {
            dropout.drop(kernels, rows, mask);
        }
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
        if (norm == null) {
            kernels.copy(dy, room);
            drop(room);
            kernels.tanhBackward(a.activated(), room);
        } else {
            kernels.zero(room);
            norm.backward(dy, a.activated(), a.moments(), room, blocks);
            kernels.geluBackward(a.hidden(), room, form);
        }
        TokenBlocks own = shards.ownRows(blocks);
        Tensor dHidden = dense.backwardBias(room, work, own);
        dense.backwardWeight(x, dHidden, own);
        dense.backwardInput(dHidden, dy);
    }
}
