package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/** Matrix products on a GPU, in order with its kernels; arguments as {@code Kernels} has them. */
interface GpuProducts extends AutoCloseable {
    void gemm(
            DType multiply,
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate);

    void weightGradient(DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks);

    /** Whether there is {@link #gemmThen}. */
    default boolean joins() {
        return false;
    }

    default void gemmThen(Tensor a, boolean transposeB, Tensor b, Epilogue epilogue, Tensor c) {
        throw new UnsupportedOperationException(name());
    }

    /** For people: who multiplies, and why. */
    String name();

    /** What bits depend on. */
    String fingerprint();

    @Override
    void close();
}
