package dev.penstock.cuda.device;

/**
 * What {@link Kernels#gemmThen} does with the sums {@code s} of a product of BF16 factors before it
 * writes them to its result {@code c}. Biases that are added to a BF16 result are rounded first.
 */
public sealed interface Epilogue {
    /** {@code c = s}, BF16. */
    record Rounding() implements Epilogue {}

    /** {@code c = s + bias}, BF16. */
    record Bias(Tensor bias) implements Epilogue {}

    /** {@code c = s + bias + residual}, F32. */
    record BiasAndResidual(Tensor bias, Tensor residual) implements Epilogue {}

    /**
     * {@code pre = s + bias} and {@code c = gelu(s + bias)}, both BF16, {@link Gelu#TANH}.
     *
     * @param pre as c, kept for {@link GeluGradient}
     */
    record BiasAndGelu(Tensor bias, Tensor pre) implements Epilogue {}

    /** {@code c = s * gelu'(pre)}, BF16. */
    record GeluGradient(Tensor pre) implements Epilogue {}
}
