package dev.penstock.cuda.cpu;

import dev.penstock.cuda.onednn.OneDnn;

/**
 * F32 products by oneDNN. Slivers (under 16 columns, or under 16 rows of a transposed a) go to our
 * own code: they are sides of weights, so that every call of an op takes the same path.
 */
final class OneDnnGemm implements MatrixProduct {
    private static final int LEAST = 16;

    private final OneDnn library;
    private final MatrixProduct slivers;

    OneDnnGemm(OneDnn library, MatrixProduct slivers) {
        this.library = library;
        this.slivers = slivers;
    }

    @Override
    public void multiply(
            int thread,
            int m,
            int n,
            int k,
            boolean transposeA,
            long a,
            int strideA,
            boolean transposeB,
            long b,
            int strideB,
            boolean accumulate,
            long c,
            int strideC) {
        if (k == 0 || n < LEAST || m < LEAST) {
            slivers.multiply(
                    thread,
                    m,
                    n,
                    k,
                    transposeA,
                    a,
                    strideA,
                    transposeB,
                    b,
                    strideB,
                    accumulate,
                    c,
                    strideC);
            return;
        }
        library.sgemm(
                transposeA, transposeB, m, n, k, a, strideA, b, strideB, accumulate, c, strideC);
    }
}
