package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.memory.Scratch;
import java.util.Arrays;

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
    private final Product[] padded;

    /**
     * @param factors type of a and b
     * @param padding one per thread
     */
    RowPadding(MatrixProduct product, DType factors, Scratch[] padding) {
        this.product = product;
        this.factors = factors;
        this.padding = padding;
        this.padded = new Product[padding.length];
        Arrays.setAll(padded, Product::new);
    }

    /**
     * Stride of the padded copy of a. A BF16 product of k below 4 has other bits where rows of a
     * lie closer together, so there the copy's rows lie as they did.
     */
    static int stride(int k, int strideA, DType factors) {
        return factors == DType.BF16 ? Math.min(strideA, FactorConverter.stride(k)) : k;
    }

    private static long leftBytes(int stride, DType factors) {
        return LEAST_ROWS * (long) stride * factors.bytes() + 63 & -64;
    }

    /** Scratch for a product that is padded. */
    static long bytes(int n, int stride, DType factors) {
        return leftBytes(stride, factors) + LEAST_ROWS * (long) n * Float.BYTES + 64;
    }

    @Override
    public void multiply(Product p) {
        if (p.m >= LEAST_ROWS || p.transposeA) {
            product.multiply(p);
            return;
        }
        int stride = stride(p.k, p.strideA, factors);
        long aRow = (long) p.k * factors.bytes();
        long aPadded = (long) stride * factors.bytes();
        long aStored = (long) p.strideA * factors.bytes();
        long aBytes = leftBytes(stride, factors);
        long cRow = (long) p.n * Float.BYTES;
        long cStored = (long) p.strideC * Float.BYTES;
        long left = padding[p.thread].reserve(bytes(p.n, stride, factors));
        long result = left + aBytes;
        Addresses.clear(left, aBytes + LEAST_ROWS * cRow);
        for (int i = 0; i < p.m; i++) {
            Addresses.copy(p.a + i * aStored, left + i * aPadded, aRow);
            Addresses.copy(p.c + i * cStored, result + i * cRow, cRow);
        }
        product.multiply(
                padded[p.thread]
                        .of(LEAST_ROWS, p.n, p.k)
                        .a(left, stride)
                        .b(p.b, p.strideB, p.transposeB)
                        .to(result, p.n, p.accumulate));
        for (int i = 0; i < p.m; i++) {
            Addresses.copy(result + i * cRow, p.c + i * cStored, cRow);
        }
    }
}
