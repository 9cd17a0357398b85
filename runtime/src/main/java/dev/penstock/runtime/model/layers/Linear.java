package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.mesh.MeshProduct;
import dev.penstock.runtime.model.parameters.LinearParameters;
import dev.penstock.runtime.model.parameters.Parameter;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@code y = x weight + bias}, or without the bias, for this shard's part of the weight, in pieces,
 * because the next step is fused with the bias. Tensors have all rows, or those of this shard of a
 * mesh, of which all shards compute each product together.
 */
final class Linear {
    /** Elements of bf16 in 16 bytes. */
    private static final int ROW_UNIT = 8;

    private final Compute compute;
    private final Parameter weight;
    private final @Nullable Parameter bias;
    private final String gradientPlace;
    private final List<LowRankBranch> branches;

    private final @Nullable MeshProduct mesh;

    /**
     * @param inward whether it leads from the residual stream to heads or hidden columns, not back
     */
    Linear(Compute compute, LinearParameters parameters, boolean inward) {
        this.compute = compute;
        mesh = compute.shards().product(inward);
        weight = parameters.weight();
        bias = parameters.bias();
        gradientPlace = bias == null ? "" : "gradient of " + bias.name() + " (backward)";
        branches =
                parameters.adapters().stream()
                        .map(adapter -> new LowRankBranch(compute, adapter))
                        .toList();
    }

    /** Computes {@code y = x weight} and what the branches add, without the bias. */
    void multiply(Tensor x, Tensor y) {
        multiply(x, 0, y);
    }

    /**
     * Same as {@link #multiply(Tensor, Tensor)} for some rows of a unit.
     *
     * @param firstRow of both in the unit
     */
    void multiply(Tensor x, int firstRow, Tensor y) {
        if (mesh != null) {
            mesh.multiply(x, compute.factor(weight), y);
            return;
        }
        compute.kernels()
                .gemm(compute.multiply(), false, x, false, compute.factor(weight), y, false);
        branches.forEach(branch -> branch.forward(x, firstRow, y));
    }

    /**
     * Returns whether {@link #multiplyThen} computes all that this adds to its output: bf16 as it
     * is computed on GPUs, with no branches, and rows that begin at 16 bytes.
     */
    boolean joins() {
        return compute.joins()
                && mesh == null
                && branches.isEmpty()
                && (!weight.group().isNarrow() || weight.group().isRounded())
                && weight.spec().rows() % ROW_UNIT == 0
                && weight.spec().columns() % ROW_UNIT == 0;
    }

    /** Computes {@code y = epilogue(x weight)}. */
    void multiplyThen(Tensor x, Epilogue epilogue, Tensor y) {
        compute.kernels().gemmThen(x, false, compute.factor(weight), epilogue, y);
    }

    /** Computes {@code dx = epilogue(dy weight^T)}. */
    void backwardInputThen(Tensor dy, Epilogue epilogue, Tensor dx) {
        compute.kernels().gemmThen(dy, true, compute.factor(weight), epilogue, dx);
    }

    /** Adds the sums of rows of the output's gradient, as products read it, to that of the bias. */
    void addBiasGradient(Tensor dy, TokenBlocks blocks) {
        Tensor sum = biasGradient();
        if (sum != null) {
            compute.kernels().biasGradient(dy, sum, blocks);
        }
        checkBiasGradient();
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

    /** Returns the gradient of the bias; null if there is none. */
    @Nullable Tensor biasGradient() {
        return bias == null || !bias.isTrained() ? null : bias.gradient();
    }

    /** Checks the gradient of the bias after something was added to it. */
    void checkBiasGradient() {
        if (bias != null && bias.isTrained()) {
            compute.guard().checkGradient(bias, gradientPlace);
        }
    }

    /**
     * Adds to the gradient of the bias.
     *
     * @param dy gradient of the output
     * @return the same as both products read it, valid until something else is rounded in {@code
     *     work}
     */
    Tensor backwardBias(Tensor dy, Workspace work, TokenBlocks blocks) {
        Tensor sum = biasGradient();
        Tensor rounded = work.rounded(dy.columns());
        if (sum != null && rounded != null) {
            compute.kernels().biasGradientRounded(dy, sum, blocks, rounded);
        } else if (sum != null) {
            compute.kernels().biasGradient(dy, sum, blocks);
        } else if (rounded != null) {
            compute.kernels().copy(dy, rounded);
        }
        checkBiasGradient();
        return rounded == null ? dy : rounded;
    }

    /** Computes {@code dx = dy weight^T}, rounded where dx is, which needs {@link #joins}. */
    void backwardInput(Tensor dy, Tensor dx) {
        if (dx.type() == DType.BF16) {
            backwardInputThen(dy, new Epilogue.Rounding(), dx);
            return;
        }
        if (mesh != null) {
            mesh.backwardInput(dy, compute.factor(weight), dx);
            return;
        }
        compute.kernels()
                .gemm(compute.multiply(), false, dy, true, compute.factor(weight), dx, false);
        branches.forEach(branch -> branch.backwardInput(dy, dx));
    }

    /** Returns whether {@link #backwardWeight} computes anything. */
    boolean hasWeightProducts() {
        return weight.isTrained() || branches.stream().anyMatch(LowRankBranch::isTrained);
    }

    /** Adds to the gradients of the weight and of the branches. */
    void backwardWeight(Tensor x, Tensor dy, TokenBlocks blocks) {
        if (mesh != null) {
            mesh.backwardWeight(x, dy, weight.gradient(), blocks);
            return;
        }
        if (weight.isTrained()) {
            compute.kernels().weightGradient(compute.multiply(), x, dy, weight.gradient(), blocks);
        }
        branches.forEach(branch -> branch.backwardWeight(x, dy, blocks));
    }
}
