package dev.penstock.cuda.cpu;

import dev.penstock.cuda.onednn.OneDnn;

/**
 * F32 products by oneDNN. Its kernels add up a row the same way whatever the other rows, but only
 * from 16 rows on; a device must not let the bits of a token depend on how many others came along:
 *
 * <ul>
 *   <li>fewer rows of tokens (a not transposed) are padded to 16;
 *   <li>fewer rows of a transposed a, or fewer than 16 columns, are no tokens but the shape of a
 *       weight, the same in every call: those slivers go to our own code.
 * </ul>
 */
final class OneDnnGemm implements MatrixProduct {
    static final int LEAST = 16;

    private final OneDnn library;
    private final MatrixProduct slivers;
    private final Scratch[] padding;

    /**
     * @param slivers what multiplies narrow matrices
     * @param padding one per thread
     */
    OneDnnGemm(OneDnn library, MatrixProduct slivers, Scratch[] padding) {
        this.library = library;
        this.slivers = slivers;
        this.padding = padding;
    }

    @Override
    public void multiply(
            int thread, int m, int n, int k, Operand a, Operand b, Operand c, boolean accumulate) {
        if (k == 0 || n < LEAST || (m < LEAST && a.transposed())) {
            slivers.multiply(thread, m, n, k, a, b, c, accumulate);
        } else if (m < LEAST) {
            multiplyPadded(thread, m, n, k, a, b, c, accumulate);
        } else {
            call(m, n, k, a, b, c, accumulate);
        }
    }

    private void multiplyPadded(
            int thread, int m, int n, int k, Operand a, Operand b, Operand c, boolean accumulate) {
        long space = padding[thread].reserve(4L * LEAST * (k + n));
        Operand left = Operand.floats(space, k, false);
        Operand result = Operand.floats(space + 4L * LEAST * k, n, false);
        Addresses.clear(space, 4L * LEAST * (k + n));
        for (int i = 0; i < m; i++) {
            Addresses.copy(a.rowAddress(i), left.rowAddress(i), 4L * k);
            Addresses.copy(c.rowAddress(i), result.rowAddress(i), 4L * n);
        }
        call(LEAST, n, k, left, b, result, accumulate);
        for (int i = 0; i < m; i++) {
            Addresses.copy(result.rowAddress(i), c.rowAddress(i), 4L * n);
        }
    }

    private void call(int m, int n, int k, Operand a, Operand b, Operand c, boolean accumulate) {
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
