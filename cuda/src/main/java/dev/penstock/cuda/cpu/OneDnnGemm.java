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
            int thread, int m, int n, int k, Operand a, Operand b, Operand c, boolean accumulate) {
        if (k == 0 || n < LEAST || m < LEAST) {
            slivers.multiply(thread, m, n, k, a, b, c, accumulate);
            return;
        }
        library.sgemm(
                a.transposed(),
                b.transposed(),
                m,
                n,
                k,
                a.address(),
                a.stride(),
                b.address(),
                b.stride(),
                accumulate,
                c.address(),
                c.stride());
    }
}
