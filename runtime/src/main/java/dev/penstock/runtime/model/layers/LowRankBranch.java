package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.parameters.AdapterParameters;
import dev.penstock.runtime.model.parameters.Parameter;

/**
 * A branch beside some columns of a linear layer (LoRA, Hu et al., arXiv 2106.09685): {@code y += s
 * (x A) B}. It keeps nothing for its backward: the product with A is as cheap as reading it.
 */
final class LowRankBranch {
    private final Kernels kernels;
    private final DType multiply;
    private final AdapterRoom room;
    private final Parameter inner;
    private final Parameter outer;
    private final int firstColumn;

    LowRankBranch(Compute compute, AdapterParameters parameters) {
        kernels = compute.kernels();
        multiply = compute.multiply();
        room = requireNonNull(compute.adapters());
        inner = parameters.inner();
        outer = parameters.outer();
        firstColumn = parameters.firstColumn();
    }

    /** Adds to an output that the layer has written, all columns of it. */
    void forward(Tensor x, Tensor y) {
        kernels.gemm(multiply, false, inside(x), false, outer.factor(), own(y), true);
    }

    /** Adds to the input's gradient that the layer has written. */
    void backwardInput(Tensor dy, Tensor dx) {
        kernels.gemm(multiply, false, insideGradient(dy), true, inner.factor(), dx, true);
    }

    boolean isTrained() {
        return inner.isTrained() || outer.isTrained();
    }

    /** Adds to the gradients of both matrices. */
    void backwardWeight(Tensor x, Tensor dy, TokenBlocks blocks) {
        if (outer.isTrained()) {
            kernels.weightGradient(multiply, inside(x), own(dy), outer.gradient(), blocks);
        }
        if (inner.isTrained()) {
            kernels.weightGradient(multiply, x, insideGradient(dy), inner.gradient(), blocks);
        }
    }

    /** Returns {@code s x A}, valid until the next call of this or of another branch. */
    private Tensor inside(Tensor x) {
        Tensor product = room.inner().rows(0, x.rows());
        kernels.gemm(multiply, false, x, false, inner.factor(), product, false);
        return scaled(product);
    }

    /** Returns {@code s dy B^T}, valid as {@link #inside}. */
    private Tensor insideGradient(Tensor dy) {
        Tensor product = room.inner().rows(0, dy.rows());
        kernels.gemm(multiply, false, own(dy), true, outer.factor(), product, false);
        return scaled(product);
    }

    private Tensor scaled(Tensor product) {
        Tensor scaled = room.scaled().rows(0, product.rows());
        kernels.gemm(DType.F32, false, product, false, room.scale(), scaled, false);
        return scaled;
    }

    private Tensor own(Tensor all) {
        return all.columns(firstColumn, outer.factor().columns());
    }
}
