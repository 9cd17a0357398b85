package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.BlockDesign;
import org.jspecify.annotations.Nullable;

/** The function between the two linear layers of an MLP. */
interface Activation {
    /**
     * Computes {@code y}.
     *
     * @param pre the first layer's output without its bias, completed by it
     * @param bias of the first layer
     */
    void forward(Tensor pre, @Nullable Tensor bias, Tensor y);

    /**
     * Returns the gradient of {@code pre}, in the memory of one of the arguments.
     *
     * @param dy may be overwritten, as may {@code pre}
     */
    Tensor backward(Tensor pre, Tensor dy);

    static Activation of(Kernels kernels, BlockDesign.Activation kind) {
        return switch (kind) {
            case GELU_TANH -> gelu(kernels, Gelu.TANH);
            case GELU -> gelu(kernels, Gelu.EXACT);
            case SWIGLU -> swiGlu(kernels);
        };
    }

    private static Activation gelu(Kernels kernels, Gelu form) {
        return new Activation() {
            @Override
            public void forward(Tensor pre, @Nullable Tensor bias, Tensor y) {
                kernels.biasGelu(pre, requireNonNull(bias), y, form);
            }

            @Override
            public Tensor backward(Tensor pre, Tensor dy) {
                kernels.geluBackward(pre, dy, form);
                return dy;
            }
        };
    }

    private static Activation swiGlu(Kernels kernels) {
        return new Activation() {
            @Override
            public void forward(Tensor pre, @Nullable Tensor bias, Tensor y) {
                kernels.swiGlu(pre, y);
            }

            @Override
            public Tensor backward(Tensor pre, Tensor dy) {
                kernels.swiGluBackward(pre, dy, pre);
                return pre;
            }
        };
    }
}
