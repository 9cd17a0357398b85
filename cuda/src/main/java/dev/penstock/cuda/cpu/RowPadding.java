package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.memory.Scratch;

/**
 * Keeps a library away from products of fewer than 16 rows of tokens. oneDNN adds up a row the same
 * way whatever the other rows, but takes other paths, with other bits, below 16 rows; and the bits
 * of a token must not depend on how many others came along. Such products are padded with zeros.
 *
 * <p>Rows of a transposed {@code a} are not tokens but a side of a weight, the same in every call:
 * they stay as they are.
 */
final class RowPadding implements MatrixProduct {
    static final int LEAST_ROWS = 16;

    private final MatrixProduct product;
    private final DType factors;
    private final Scratch[] padding;

    /**
     * @param factors type of a and b
     * @param padding one per thread
     */
    RowPadding(MatrixProduct product, DType factors, Scratch[] padding) {
        this.product = product;
        this.factors = factors;
        this.padding = padding;
    }

    private static long leftBytes(int k, DType factors) {
        return LEAST_ROWS * (long) k * factors.bytes() + 63 & -64;
    }

    /** Scratch for a product that is padded. */
    static long bytes(int n, int k, DType factors) {
        return leftBytes(k, factors) + LEAST_ROWS * (long) n * Float.BYTES + 64;
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
        if (m >= LEAST_ROWS || transposeA) {
            product.multiply(
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
        long aRow = (long) k * factors.bytes();
        long aBytes = leftBytes(k, factors);
        long cRow = (long) n * Float.BYTES;
        long left = padding[thread].reserve(bytes(n, k, factors));
        long result = left + aBytes;
        Addresses.clear(left, aBytes + LEAST_ROWS * cRow);
        for (int i = 0; i < m; i++) {
            Addresses.copy(a + (long) i * strideA * factors.bytes(), left + i * aRow, aRow);
            Addresses.copy(c + (long) i * strideC * Float.BYTES, result + i * cRow, cRow);
        }
        product.multiply(
                thread,
                LEAST_ROWS,
                n,
                k,
                false,
                left,
                k,
                transposeB,
                b,
                strideB,
                accumulate,
                result,
                n);
        for (int i = 0; i < m; i++) {
            Addresses.copy(result + i * cRow, c + (long) i * strideC * Float.BYTES, cRow);
        }
    }
}
