package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.parameters.LinearParameters;

/**
 * A {@link Linear} whose rows are divided among shards: its input has this shard's columns of all
 * rows, each shard computes a part of the output, and the sum is of own rows, as is its gradient.
 */
final class RowLinear {
    private final TensorShards shards;
    private final Linear linear;

    RowLinear(Compute compute, LinearParameters parameters) {
        shards = compute.shards();
        linear = new Linear(compute, parameters);
    }

    /** Computes the output without the bias. */
    void multiply(Tensor x, Tensor y) {
        linear.multiply(x, shards.allRows(y));
        shards.sumInto(y);
    }

    /** Adds the bias, if there is one, and a residual to an output. */
    void addBiasAndResidual(Tensor y, Tensor residual) {
        linear.addBiasAndResidual(y, residual);
    }

    /** Writes the input's gradient and adds to those of both parameters. */
    void backward(Tensor x, Tensor dy, Tensor dx, Workspace work, TokenBlocks blocks) {
        Tensor all = linear.backwardBias(shards.gather(dy), work, blocks);
        linear.backwardInput(all, dx);
        linear.backwardWeight(x, all, blocks);
    }

    /** Same as {@link #backward} without the weight's gradient. */
    void backwardInput(Tensor dy, Tensor dx, Workspace work, TokenBlocks blocks) {
        linear.backwardInput(linear.backwardBias(shards.gather(dy), work, blocks), dx);
    }

    /** Adds to the weight's gradient. */
    void backwardWeight(Tensor x, Tensor dy, TokenBlocks blocks) {
        if (linear.hasWeightProducts()) {
            linear.backwardWeight(x, shards.gather(dy), blocks);
        }
    }
}
