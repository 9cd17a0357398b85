package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.shape.BlockDesign;
import org.jspecify.annotations.Nullable;

/** The function between the two linear layers of an MLP. */
interface Activation {
    /**
     * Computes the first layer and {@code y}.
     *
     * @param x of all rows
     * @param pre receives what the backward needs
     */
    void forward(Tensor x, Tensor pre, Tensor y);

    /** Returns what the gradient of {@code y} lies in, in the memory of this. */
    default Tensor in(Tensor dy) {
        return dy;
    }

    /** Returns what the product does that computes the gradient of {@code y}; null for nothing. */
    default @Nullable Epilogue gradient(Tensor pre) {
        return null;
    }

    /**
     * Adds to the gradient of the first layer's bias.
     *
     * @param dy may be overwritten, as may {@code pre}; where {@link #gradient} says what is done
     *     to it, that is done
     * @return the gradient of {@code pre} as products read it, in the memory of one of the
     *     arguments
     */
    Tensor backward(Tensor pre, Tensor dy, Workspace work, TokenBlocks blocks);

    /**
     * Returns a function of some kind.
     *
     * @param hidden the first layer
     * @param joins whether products of the second layer can do what follows them
     */
    static Activation of(
            Compute compute, BlockDesign.Activation kind, ColumnLinear hidden, boolean joins) {
        return switch (kind) {
            case GELU_TANH ->
                    joins && hidden.joins()
                            ? joinedGelu(compute, hidden)
                            : gelu(compute, hidden, Gelu.TANH);
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
            public void forward(Tensor x, Tensor pre, Tensor y) {
                hidden.multiply(x, pre);
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
            public void forward(Tensor x, Tensor pre, Tensor y) {
                hidden.multiply(x, pre);
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

    /** Of bf16 that products write: the first layer's output lies in half of its memory. */
    private static Activation joinedGelu(Compute compute, ColumnLinear hidden) {
        return new Activation() {
            @Override
            public void forward(Tensor x, Tensor pre, Tensor y) {
                Tensor bias = requireNonNull(hidden.bias());
                hidden.multiplyThen(x, new Epilogue.BiasAndGelu(bias, compute.keptIn(pre)), y);
            }

            @Override
            public Tensor in(Tensor dy) {
                return compute.keptIn(dy);
            }

            @Override
            public Epilogue gradient(Tensor pre) {
                return new Epilogue.GeluGradient(compute.keptIn(pre));
            }

            @Override
            public Tensor backward(Tensor pre, Tensor dy, Workspace work, TokenBlocks blocks) {
                hidden.addBiasGradient(dy, blocks);
                return dy;
            }
        };
    }

    private static Activation geGlu(Kernels kernels, ColumnLinear hidden) {
        return new Activation() {
            @Override
            public void forward(Tensor x, Tensor pre, Tensor y) {
                hidden.multiply(x, pre);
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
            public void forward(Tensor x, Tensor pre, Tensor y) {
                hidden.multiply(x, pre);
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
