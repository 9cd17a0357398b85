package dev.penstock.runtime.model.layers;

import dev.penstock.actors.collective.Collective;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.parameters.LinearParameters;
import org.jspecify.annotations.Nullable;

/**
 * A {@link Linear} whose columns are divided among shards (Megatron, arXiv 1909.08053, section 3):
 * its input is of own rows, its output has this shard's columns of all rows, and each shard
 * computes a part of the input's gradient.
 */
final class ColumnLinear {
    private final TensorShards shards;
    private final Linear linear;

    ColumnLinear(Compute compute, LinearParameters parameters) {
        shards = compute.shards();
        linear = new Linear(compute, parameters, true);
    }

    /** Returns all rows of an input, for {@link #multiply}. */
    Tensor gather(Tensor x) {
        return shards.gather(x);
    }

    /** Computes the output without the bias. */
    void multiply(Tensor x, Tensor y) {
        linear.multiply(x, y);
    }

    /**
     * Computes some rows of the output, without the bias.
     *
     * @param firstRow of both in the unit
     */
    void multiply(Tensor x, int firstRow, Tensor y) {
        linear.multiply(x, firstRow, y);
    }

    /** Returns whether {@link #multiplyThen} computes the whole output. */
    boolean joins() {
        return linear.joins();
    }

    /** See {@link Linear#multiplyThen}. */
    void multiplyThen(Tensor x, Epilogue epilogue, Tensor y) {
        linear.multiplyThen(x, epilogue, y);
    }

    /** See {@link Linear#addBiasGradient}. */
    void addBiasGradient(Tensor dy, TokenBlocks blocks) {
        linear.addBiasGradient(dy, blocks);
    }

    @Nullable Tensor bias() {
        return linear.bias();
    }

    /** Returns the gradient of the bias; null if there is none, or it is not trained. */
    @Nullable Tensor biasGradient() {
        return linear.biasGradient();
    }

    /** Checks the gradient of the bias after something was added to it. */
    void checkBiasGradient() {
        linear.checkBiasGradient();
    }

    /** See {@link Linear#backwardBias}; before the other parts of a backward. */
    Tensor backwardBias(Tensor dy, Workspace work, TokenBlocks blocks) {
        return linear.backwardBias(dy, work, blocks);
    }

    /**
     * Adds to the weight's gradient. The input is gathered while its gradient is computed, and that
     * gradient is summed while the weight's is computed.
     *
     * @param dy as products read it
     * @param dx scratch of all rows
     * @return own rows of the input's gradient
     */
    Tensor backward(Tensor x, Tensor dy, Tensor dx, TokenBlocks blocks) {
        if (!linear.hasWeightProducts()) {
            return backwardInput(dy, dx);
        }
        Collective gather = shards.beginGather(x);
        linear.backwardInput(dy, dx);
        Collective sum = shards.beginSum(dx);
        shards.await(gather);
        linear.backwardWeight(shards.allRows(x), dy, blocks);
        shards.await(sum);
        return shards.ownRows(dx);
    }

    /** Same as {@link #backward} without the weight's gradient. */
    Tensor backwardInput(Tensor dy, Tensor dx) {
        linear.backwardInput(dy, dx);
        return shards.sum(dx);
    }

    /** Adds to the weight's gradient. */
    void backwardWeight(Tensor x, Tensor dy, TokenBlocks blocks) {
        if (linear.hasWeightProducts()) {
            linear.backwardWeight(shards.gather(x), dy, blocks);
        }
    }
}
