package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.shape.BlockDesign;

/** The function between the two linear layers of an MLP. */
interface Activation {
    /**
     * Computes {@code y}.
     *
     * @param pre the first layer's output without its bias; the backward needs what is left there
     */
    void forward(Tensor pre, Tensor y);

    /**
     * Adds to the gradient of the first layer's bias.
     *
     * @param dy may be overwritten, as may {@code pre}
     * @return the gradient of {@code pre} as products read it, in the memory of one of the
     *     arguments
     */
    Tensor backward(Tensor pre, Tensor dy, Workspace work, TokenBlocks blocks);

    /**
     * Returns a function of some kind.
     *
     * @param hidden the first layer
     */
    static Activation of(Compute compute, BlockDesign.Activation kind, ColumnLinear hidden) {
        return switch (kind) {
            case GELU_TANH -> gelu(compute, hidden, Gelu.TANH);
            case GELU -> gelu(compute, hidden, Gelu.EXACT);
            case SWIGLU -> swiGlu(compute.kernels(), hidden);
            case GEGLU -> geGlu(compute.kernels(), hidden);
        };
    }

    private static Activation gelu(Compute compute, ColumnLinear hidden, Gelu form) {
        return compute.rounds()
                ? roundedGelu(compute.kernels(), hidden, form)
                : gelu(compute.kernels(), hidden, form);
    }

    private static Activation gelu(Kernels kernels, ColumnLinear hidden, Gelu form) {
        return new Activation() {
            @Override
            public void forward(Tensor pre, Tensor y) {
                kernels.biasGelu(pre, requireNonNull(hidden.bias()), y, form);
            }

            @Override
            public Tensor backward(Tensor pre, Tensor dy, Workspace work, TokenBlocks blocks) {
                kernels.geluBackward(pre, dy, form);
                return hidden.backwardBias(dy, work, blocks);
            }
        };
    }

    private static Activation roundedGelu(Kernels kernels, ColumnLinear hidden, Gelu form) {
        return new Activation() {
            @Override
            public void forward(Tensor pre, Tensor y) {
                kernels.geluRounded(pre, requireNonNull(hidden.bias()), y, form);
            }

            @Override
            public Tensor backward(Tensor pre, Tensor dy, Workspace work, TokenBlocks blocks) {
                Tensor dPre = requireNonNull(work.rounded(pre.columns()));
                kernels.geluBackwardRounded(
                        pre,
                        requireNonNull(hidden.bias()),
                        dy,
                        form,
                        dPre,
                        hidden.biasGradient(),
                        blocks);
                hidden.checkBiasGradient();
                return dPre;
            }
        };
    }

    private static Activation geGlu(Kernels kernels, ColumnLinear hidden) {
        return new Activation() {
            @Override
            public void forward(Tensor pre, Tensor y) {
                kernels.geGlu(pre, y);
            }

            @Override
            public Tensor backward(Tensor pre, Tensor dy, Workspace work, TokenBlocks blocks) {
                kernels.geGluBackward(pre, dy, pre);
                return hidden.backwardBias(pre, work, blocks);
            }
        };
    }

    private static Activation swiGlu(Kernels kernels, ColumnLinear hidden) {
        return new Activation() {
            @Override
            public void forward(Tensor pre, Tensor y) {
                kernels.swiGlu(pre, y);
            }

            @Override
            public Tensor backward(Tensor pre, Tensor dy, Workspace work, TokenBlocks blocks) {
                Tensor rounded = work.rounded(pre.columns());
                if (rounded != null && hidden.biasGradient() == null) {
                    kernels.swiGluBackward(pre, dy, rounded);
                    return rounded;
                }
                kernels.swiGluBackward(pre, dy, pre);
                return hidden.backwardBias(pre, work, blocks);
            }
        };
    }
}
