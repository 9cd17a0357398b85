package dev.penstock.cuda.cpu;

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
    private final Scratch[] padding;

    /**
     * @param padding one per thread
     */
    RowPadding(MatrixProduct product, Scratch[] padding) {
        this.product = product;
        this.padding = padding;
    }

    @Override
    public void multiply(
            int thread, int m, int n, int k, Operand a, Operand b, Operand c, boolean accumulate) {
        if (m >= LEAST_ROWS || a.transposed()) {
            product.multiply(thread, m, n, k, a, b, c, accumulate);
            return;
        }
        long aRow = (long) k * a.elementBytes();
        long aBytes = LEAST_ROWS * aRow + 63 & -64;
        long cRow = (long) n * c.elementBytes();
        long space = padding[thread].reserve(aBytes + LEAST_ROWS * cRow + 64);
        Addresses.clear(space, aBytes + LEAST_ROWS * cRow);
        Operand left = new Operand(space, k, false, a.elementBytes());
        Operand result = new Operand(space + aBytes, n, false, c.elementBytes());
        for (int i = 0; i < m; i++) {
            Addresses.copy(a.rowAddress(i), left.rowAddress(i), aRow);
            Addresses.copy(c.rowAddress(i), result.rowAddress(i), cRow);
        }
        product.multiply(thread, LEAST_ROWS, n, k, left, b, result, accumulate);
        for (int i = 0; i < m; i++) {
            Addresses.copy(result.rowAddress(i), c.rowAddress(i), cRow);
        }
    }
}
