package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.parameters.LinearParameters;
import dev.penstock.runtime.model.parameters.Parameter;
import org.jspecify.annotations.Nullable;

/**
 * {@code y = x weight + bias}, or without the bias, for this shard's part of the weight, in pieces,
 * because the next step is fused with the bias. Tensors have all rows.
 */
final class Linear {
    private final Compute compute;
    private final Parameter weight;
    private final @Nullable Parameter bias;
    private final String gradientPlace;

    Linear(Compute compute, LinearParameters parameters) {
        this.compute = compute;
        weight = parameters.weight();
        bias = parameters.bias();
        gradientPlace = bias == null ? "" : "gradient of " + bias.name() + " (backward)";
    }

    /** Computes {@code y = x weight}, without the bias. */
    void multiply(Tensor x, Tensor y) {
        compute.kernels().gemm(compute.multiply(), false, x, false, weight.factor(), y, false);
    }

    /** Returns the bias {@code [1, out]}; null if there is none. */
    @Nullable Tensor bias() {
        return bias == null ? null : bias.weight();
    }

    /** Adds the bias, if there is one, and a residual. */
    void addBiasAndResidual(Tensor y, Tensor residual) {
        if (bias == null) {
            compute.kernels().add(residual, y);
        } else {
            compute.kernels().addBiasAndResidual(y, bias.weight(), residual);
        }
    }

    /** Computes {@code dx = dy weight^T}, and the gradient of a bias, since dy is at hand. */
    void backwardInput(Tensor dy, Tensor dx, TokenBlocks blocks) {
        if (bias != null) {
            compute.kernels().biasGradient(dy, bias.gradient(), blocks);
            compute.guard().check(bias.gradient(), gradientPlace);
        }
        compute.kernels().gemm(compute.multiply(), false, dy, true, weight.factor(), dx, false);
    }

    /** Adds to the weight's gradient. */
    void backwardWeight(Tensor x, Tensor dy, TokenBlocks blocks) {
        compute.kernels().weightGradient(compute.multiply(), x, dy, weight.gradient(), blocks);
    }
}
