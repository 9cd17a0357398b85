package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.parameters.LinearParameters;
import org.jspecify.annotations.Nullable;

/**
 * A {@link Linear} that ends a branch of a block, and whose rows are divided among shards: its
 * input has this shard's columns of all rows, each shard computes a part of the output, and the sum
 * is of own rows, as is its gradient. What is dropped of a branch is dropped here, before the
 * residual is added.
 */
final class RowLinear {
    private final Kernels kernels;
    private final TensorShards shards;
    private final Linear linear;
    private final @Nullable StreamDropout dropout;
    private final @Nullable DropoutMask mask;

    RowLinear(Compute compute, LinearParameters parameters) {
        kernels = compute.kernels();
        shards = compute.shards();
        linear = new Linear(compute, parameters, false);
        dropout = compute.dropout();
        mask = dropout == null ? null : dropout.mask(parameters.weight().name());
    }

    /**
     * Computes the output, drops what dropout drops of it, and adds a residual.
     *
     * @param residual not y
     */
    void multiplyAndAdd(Tensor x, Tensor residual, Tensor y) {
        Tensor bias = linear.bias();
        boolean drops = dropout != null && dropout.isOn();
        if (bias != null && !drops && linear.joins() && shards.areOne()) {
            linear.multiplyThen(x, new Epilogue.BiasAndResidual(bias, residual), y);
            return;
        }
        linear.multiply(x, shards.allRows(y));
        shards.sumInto(y);
        addBiasAndResidual(y, residual);
    }

    private void addBiasAndResidual(Tensor y, Tensor residual) {
        if (dropout == null || mask == null || !dropout.isOn()) {
            linear.addBiasAndResidual(y, residual);
            return;
        }
        Tensor bias = linear.bias();
        if (bias != null) {
            kernels.addBias(y, bias);
        }
        dropout.drop(kernels, y, mask);
        kernels.add(residual, y);
    }

    /**
     * Returns the gradient of the output before dropout, of own rows, which all backwards want;
     * valid until the next call of this or of another layer.
     *
     * @param dStream the gradient of what the branch was added to
     */
    Tensor outputGradient(Tensor dStream) {
        return dropout == null || mask == null ? dStream : dropout.gradient(kernels, dStream, mask);
    }

    /**
     * Writes the input's gradient and adds to those of both parameters.
     *
     * @param then what is done to the input's gradient, only where this {@link #joins}; null for
     *     nothing
     */
    void backward(
            Tensor x,
            Tensor dy,
            Tensor dx,
            @Nullable Epilogue then,
            Workspace work,
            TokenBlocks blocks) {
        linear.backwardWeight(x, backwardInput(dy, dx, then, work, blocks), blocks);
    }

    /**
     * Same as {@link #backward} without the weight's gradient.
     *
     * @return dy of all rows as products read it
     */
    Tensor backwardInput(
            Tensor dy, Tensor dx, @Nullable Epilogue then, Workspace work, TokenBlocks blocks) {
        Tensor all = linear.backwardBias(shards.gather(dy), work, blocks);
        if (then == null) {
            linear.backwardInput(all, dx);
        } else {
            linear.backwardInputThen(all, then, dx);
        }
        return all;
    }

    /** Returns whether something can be done to the input's gradient at once. */
    boolean joins() {
        return linear.joins();
    }

    /** Adds to the weight's gradient. */
    void backwardWeight(Tensor x, Tensor dy, TokenBlocks blocks) {
        if (linear.hasWeightProducts()) {
            linear.backwardWeight(x, shards.gather(dy), blocks);
        }
    }
}
