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
    public void multiply(Product p) {
        if (p.k == 0 || p.n < LEAST || p.m < LEAST) {
            slivers.multiply(p);
            return;
        }
        library.sgemm(
                p.transposeA,
                p.transposeB,
                p.m,
                p.n,
                p.k,
                p.a,
                p.strideA,
                p.b,
                p.strideB,
                p.accumulate,
                p.c,
                p.strideC);
    }
}
