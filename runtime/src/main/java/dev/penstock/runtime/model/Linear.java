package dev.penstock.runtime.model;

import dev.penstock.actors.collective.Collective;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/** {@code y = x weight + bias}, in pieces, because what follows is fused with the bias. */
final class Linear {
    private final Compute compute;
    private final Parameter weight;
    private final Parameter bias;
    private final String gradientPlace;

    Linear(Compute compute, LinearParameters parameters) {
        this.compute = compute;
        weight = parameters.weight();
        bias = parameters.bias();
        gradientPlace = "gradient of " + bias.name() + " (backward)";
    }

    /** {@code y = x weight}, without the bias, where rows of the weight are divided. */
    void multiplySummed(Tensor x, Tensor y) {
        multiply(x, y);
        compute.shards().sum(y);
    }

    /** {@code y = x weight}, without the bias. */
    void multiply(Tensor x, Tensor y) {
        compute.kernels().gemm(compute.multiply(), false, x, false, weight.factor(), y, false);
    }

    /** The bias {@code [1, out]}. */
    Tensor bias() {
        return bias.weight();
    }

    /**
     * {@code dx = dy weight^T}; both parameters' gradients accumulate. Where the columns of the
     * weight are divided among shards, so that each has a part of dx, that is summed meanwhile.
     */
    void backwardSummed(Tensor x, Tensor dy, Tensor dx, TokenBlocks blocks) {
        backwardInput(dy, dx, blocks);
        Collective sum = compute.shards().beginSum(dx);
        backwardWeight(x, dy, blocks);
        compute.shards().await(sum);
    }

    /** The same of a weight whose rows are divided, so that each shard has its columns of dx. */
    void backward(Tensor x, Tensor dy, Tensor dx, TokenBlocks blocks) {
        backwardInput(dy, dx, blocks);
        backwardWeight(x, dy, blocks);
    }

    /** As {@link #backwardInput} where columns of the weight are divided. */
    void backwardInputSummed(Tensor dy, Tensor dx, TokenBlocks blocks) {
        backwardInput(dy, dx, blocks);
        compute.shards().sum(dx);
    }

    /** {@code dx = dy weight^T}, and the bias' gradient, for which dy is at hand. */
    void backwardInput(Tensor dy, Tensor dx, TokenBlocks blocks) {
        compute.kernels().biasGradient(dy, bias.gradient(), blocks);
        compute.guard().check(bias.gradient(), gradientPlace);
        compute.kernels().gemm(compute.multiply(), false, dy, true, weight.factor(), dx, false);
    }

    /** The weight's gradient accumulates. */
    void backwardWeight(Tensor x, Tensor dy, TokenBlocks blocks) {
        compute.kernels().weightGradient(compute.multiply(), x, dy, weight.gradient(), blocks);
    }
}
