package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.parameters.AdapterParameters;
import dev.penstock.runtime.model.parameters.Parameter;
import org.jspecify.annotations.Nullable;

/**
 * A branch beside some columns of a linear layer (LoRA, Hu et al., arXiv 2106.09685): {@code y += s
 * (drop(x) A) B}, where the factor of dropout is a part of s. It keeps nothing for its backward:
 * the product with A is as cheap as reading it, and what dropout drops is computed again.
 */
final class LowRankBranch {
    private final Kernels kernels;
    private final DType multiply;
    private final AdapterRoom room;
    private final Parameter inner;
    private final Parameter outer;
    private final int firstColumn;
    private final @Nullable AdapterDropout dropout;
    private final DropoutMask mask;

    LowRankBranch(Compute compute, AdapterParameters parameters) {
        kernels = compute.kernels();
        multiply = compute.multiply();
        room = requireNonNull(compute.adapters());
        inner = parameters.inner();
        outer = parameters.outer();
        firstColumn = parameters.firstColumn();
        dropout = room.dropout();
        int firstInput = inner.spec().piece().strips().getFirst().firstRow();
        mask =
                dropout == null
                        ? new DropoutMask(0, 0, 0, 1)
                        : dropout.mask(inner.name(), firstInput);
    }

    /**
     * Adds to an output that the layer has written, all columns of it.
     *
     * @param firstRow of both in the unit
     */
    void forward(Tensor x, int firstRow, Tensor y) {
        Tensor inside = inside(dropped(x, firstRow));
        kernels.gemm(multiply, false, inside, false, outer.factor(), own(y), true);
    }

    /** Adds to the input's gradient that the layer has written. */
    void backwardInput(Tensor dy, Tensor dx) {
        Tensor inside = insideGradient(dy);
        if (dropout == null || !dropout.isOn()) {
            kernels.gemm(multiply, false, inside, true, inner.factor(), dx, true);
            return;
        }
        Tensor dDropped = dropout.room(DType.F32, dx.rows(), dx.columns());
        kernels.gemm(multiply, false, inside, true, inner.factor(), dDropped, false);
        dropout.addGradient(kernels, dDropped, mask, dx);
    }

    boolean isTrained() {
        return inner.isTrained() || outer.isTrained();
    }

    /** Adds to the gradients of both matrices. */
    void backwardWeight(Tensor x, Tensor dy, TokenBlocks blocks) {
        if (!isTrained()) {
            return;
        }
        Tensor dropped = dropped(x, 0);
        if (outer.isTrained()) {
            kernels.weightGradient(multiply, inside(dropped), own(dy), outer.gradient(), blocks);
        }
        if (inner.isTrained()) {
            Tensor dInside = insideGradient(dy);
            kernels.weightGradient(multiply, dropped, dInside, inner.gradient(), blocks);
        }
    }

    private Tensor dropped(Tensor x, int firstRow) {
        return dropout == null ? x : dropout.dropped(kernels, x, firstRow, mask);
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
        kernels.gemm(DType.F32, false, product, false, room.scaleNow(), scaled, false);
        return scaled;
    }

    private Tensor own(Tensor all) {
        return all.columns(firstColumn, outer.factor().columns());
    }
}
