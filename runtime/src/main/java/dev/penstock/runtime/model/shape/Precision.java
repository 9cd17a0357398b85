package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.DType;

/**
 * What is computed and kept in F32, and what in bf16 (bfloat16) or fp16 (IEEE half). In every
 * precision these are F32: the residual stream and its gradient, statistics of norms and of
 * softmax, all sums, what leaves a product, logits, the gradients of parameters, the master weights
 * and the optimizer.
 *
 * <p>With the narrow ones the factors of matrix products are rounded to it, each once, from F32
 * values that were computed in full: inputs of linear layers (outputs of norms, of attention and of
 * the activation), the gradients of their outputs, the gradients of logits, and the weights. The
 * gradients of biases and of norms' weights are sums of values that were not rounded. On a GPU
 * attention rounds its factors too: queries, keys, values, probabilities and their gradients, where
 * they are multiplied. Where its products do what follows them (cublasLt), what only element-wise
 * kernels read is bf16 too: docs/gpu.md.
 */
public enum Precision {
    /** Single precision throughout. */
    FLOAT32(DType.F32, DType.F32),
    /**
     * Factors are rounded to bf16 where they are multiplied. Only the matrices have a rounded copy,
     * which is refreshed after every update.
     */
    BF16(DType.BF16, DType.F32),
    /**
     * The same with IEEE half precision. Its gradients want a loss scale, since they vanish below
     * 6e-8.
     */
    FP16(DType.F16, DType.F32),
    /**
     * The same numbers as with {@link #BF16} unless products do what follows them, but whatever
     * only products read is written as bf16 by the op that computes it, and exists in no other
     * form: for devices whose kernels do so (GPUs). What attention puts out is kept in both forms,
     * as its backward reads it too.
     */
    BF16_KEPT(DType.BF16, DType.BF16);

    private final DType multiply;
    private final DType kept;

    Precision(DType multiply, DType kept) {
        this.multiply = multiply;
        this.kept = kept;
    }

    /** Returns the type in which the factors of matrix products are multiplied. */
    public DType multiply() {
        return multiply;
    }

    /** Returns the type in which activations and gradients are kept that only products read. */
    public DType kept() {
        return kept;
    }

    /** Returns whether products read rounded copies of the weights. */
    public boolean copiesWeights() {
        return multiply != DType.F32;
    }
}
