package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Int8Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.memory.Scratch;
import java.util.Arrays;

/**
 * Products with an I8 right factor: each thread widens a few columns of it at a time into scratch
 * that stays in its cache, and multiplies those in F32. The blocks follow from the factor alone, so
 * an element's bits depend neither on the rows beside it nor on the threads.
 *
 * <pre>
 *   b, as it is multiplied     | block 0 | block 1 | block 2 | ..
 *   thread                          0         1         0
 * </pre>
 */
final class ScaledProducts {
    /** Floats of a widened block: half of a second-level cache of 1 MiB. */
    private static final int BLOCK_FLOATS = 1 << 17;

    /** Columns of a block start on cache lines, and no block is a sliver. */
    private static final int COLUMNS_QUANTUM = 32;

    private final WorkerPool pool;
    private final MatrixProduct floats;
    private final Int8Kernels kernels;
    private final Scratch[] scratch;
    private final Product[] products;

    /**
     * @param floats multiplies F32
     * @param scratch one per thread
     */
    ScaledProducts(WorkerPool pool, MatrixProduct floats, Int8Kernels kernels, Scratch[] scratch) {
        this.pool = pool;
        this.floats = floats;
        this.kernels = kernels;
        this.scratch = scratch;
        products = new Product[pool.threads()];
        Arrays.setAll(products, Product::new);
    }

    /** As {@link CpuProducts#gemm}, in F32. */
    void gemm(
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate) {
        int k = transposeA ? a.rows() : a.columns();
        int n = c.columns();
        int blocks = blocks(k, n);
        long from = a.address();
        long to = c.address();
        pool.run(
                b.elements(),
                thread -> {
                    for (int i = thread; i < blocks; i += pool.threads()) {
                        int first = i * columns(k);
                        int width = width(i, k, n);
                        int stride = FactorConverter.stride(transposeB ? k : width);
                        long widened =
                                transposeB
                                        ? rows(thread, b, first, width, stride)
                                        : columns(thread, b, first, width, stride);
                        floats.multiply(
                                products[thread]
                                        .of(c.rows(), width, k)
                                        .a(from, a.stride(), transposeA)
                                        .b(widened, stride, transposeB)
                                        .to(to + 4L * first, c.stride(), accumulate));
                    }
                });
    }

    /** Blocks of a factor of n columns, as it is multiplied; block i is thread i mod threads'. */
    static int blocks(int k, int n) {
        return Math.max(1, n / columns(k));
    }

    /** Columns of a block; the last one is longer. */
    static int width(int block, int k, int n) {
        return block + 1 < blocks(k, n) ? columns(k) : n - block * columns(k);
    }

    /** Scratch for a block. */
    static long bytes(int k, int width, boolean transposed) {
        int rows = transposed ? width : k;
        int columns = transposed ? k : width;
        return Math.max(1L, rows) * FactorConverter.stride(columns) * Float.BYTES;
    }

    private static int columns(int k) {
        int fitting = BLOCK_FLOATS / Math.max(1, k) / COLUMNS_QUANTUM * COLUMNS_QUANTUM;
        return Math.max(COLUMNS_QUANTUM, fitting);
    }

    private long columns(int thread, Tensor b, int first, int width, int stride) {
        long to = scratch[thread].reserve(bytes(b.rows(), width, false));
        long row = b.address();
        for (int i = 0; i < b.rows(); i++, row += b.stride()) {
            float scale = Addresses.getFloat(Int8Kernels.scaleAt(row, b.stride()));
            kernels.widen(row + first, scale, to + 4L * i * stride, width);
        }
        return to;
    }

    private long rows(int thread, Tensor b, int first, int count, int stride) {
        long to = scratch[thread].reserve(bytes(b.columns(), count, true));
        long row = b.address() + (long) first * b.stride();
        for (int i = 0; i < count; i++, row += b.stride()) {
            float scale = Addresses.getFloat(Int8Kernels.scaleAt(row, b.stride()));
            kernels.widen(row, scale, to + 4L * i * stride, b.columns());
        }
        return to;
    }
}
