package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Matrix products over all threads: the result is cut into {@link Pieces}, and an element's bits do
 * not depend on the piece it falls into.
 *
 * <p>For products in BF16, F32 factors are first converted into scratch: to BF16 where a library
 * multiplies it, otherwise to F32 that holds the rounded values.
 *
 * <p>Used by one caller at a time, like the pool.
 */
final class CpuProducts {
    /** Multiply-adds that one thread does in about ten microseconds: not worth waking others. */
    private static final long WORTH_WAKING = 1 << 20;

    /**
     * A tile of a weight gradient stays in the caches while the blocks of tokens are added to it.
     */
    private static final int TILE_ROWS = 768;

    private static final int TILE_COLUMNS = 512;

    private final WorkerPool pool;
    private final MatrixProduct floats;
    private final @Nullable MatrixProduct bfloats;
    private final FactorConverter leftConverter;
    private final FactorConverter rightConverter;
    private final ScaledProducts scaled;
    private final Call call;

    /**
     * @param floats multiplies F32
     * @param bfloats multiplies BF16, if there is such a library and hardware for it
     */
    CpuProducts(
            WorkerPool pool,
            MatrixProduct floats,
            @Nullable MatrixProduct bfloats,
            FactorConverter leftConverter,
            FactorConverter rightConverter,
            ScaledProducts scaled) {
        this.pool = pool;
        this.floats = floats;
        this.bfloats = bfloats;
        this.leftConverter = leftConverter;
        this.rightConverter = rightConverter;
        this.scaled = scaled;
        this.call = new Call(floats, pool.threads());
    }

    void gemm(
            DType multiply,
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate) {
        if (b.type() == DType.I8) {
            scaled.gemm(transposeA, a, transposeB, b, c, accumulate);
            return;
        }
        take(call.a, multiply, a, transposeA, leftConverter);
        take(call.b, multiply, b, transposeB, rightConverter);
        call.accumulate = accumulate;
        call.blocks = null;
        run(product(multiply), transposeA ? a.rows() : a.columns(), c);
    }

    void weightGradient(DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        take(call.a, multiply, x, true, leftConverter);
        take(call.b, multiply, dy, false, rightConverter);
        call.accumulate = true;
        call.blocks = blocks;
        run(product(multiply), blocks.rows(), dWeight);
    }

    private void take(
            Factor to,
            DType multiply,
            Tensor tensor,
            boolean transposed,
            FactorConverter converter) {
        if (!converts(multiply, tensor, bfloats != null)) {
            to.set(tensor.address(), tensor.stride(), transposed, tensor.type().bytes());
            return;
        }
        Operand converted = converted(multiply, tensor, transposed, converter);
        to.set(
                converted.address(),
                converted.stride(),
                converted.transposed(),
                converted.elementBytes());
    }

    private Operand converted(
            DType multiply, Tensor tensor, boolean transposed, FactorConverter converter) {
        if (multiply == DType.F16) {
            return converter.toRoundedHalves(tensor, transposed);
        }
        return bfloats == null
                ? converter.toRoundedFloats(tensor, transposed)
                : converter.toBFloats(tensor, transposed);
    }

    /**
     * Whether a factor is converted first.
     *
     * @param multipliesBFloats whether a library multiplies BF16
     */
    static boolean converts(DType multiply, Tensor factor, boolean multipliesBFloats) {
        return multiply != DType.F32
                && !(multipliesBFloats && multiply == DType.BF16 && factor.type() == DType.BF16);
    }

    private MatrixProduct product(DType multiply) {
        return multiply == DType.BF16 && bfloats != null ? bfloats : floats;
    }

    private void run(MatrixProduct product, int k, Tensor c) {
        call.library = product;
        call.k = k;
        call.c.set(c.address(), c.stride(), false, Float.BYTES);
        Pieces pieces = Pieces.of(c.rows(), c.columns(), pool.threads());
        call.pieces = pieces;
        if (!worthWaking(pieces, k)) {
            for (int piece = 0; piece < pieces.count(); piece++) {
                call.run(0, piece);
            }
        } else {
            pool.run(call);
        }
    }

    /** Whether each piece has a thread of its own, that of its number; otherwise one has all. */
    static boolean worthWaking(Pieces pieces, int k) {
        return pieces.count() > 1 && (long) pieces.m() * pieces.n() * k >= WORTH_WAKING;
    }

    /** One product of many that make a weight gradient. */
    interface TileWork {
        void multiply(int row, int m, int column, int n, int first, int depth);
    }

    /**
     * All blocks for one tile of a piece after the other: each tile is fetched from memory once.
     */
    static void eachTile(Pieces pieces, int piece, TokenBlocks grid, TileWork work) {
        int endRow = pieces.endRow(piece);
        int endColumn = pieces.endColumn(piece);
        int m;
        for (int i = pieces.firstRow(piece); i < endRow; i += m) {
            m = tile(endRow - i, TILE_ROWS);
            int n;
            for (int j = pieces.firstColumn(piece); j < endColumn; j += n) {
                n = tile(endColumn - j, TILE_COLUMNS);
                for (int block = 0; block < grid.count(); block++) {
                    work.multiply(i, m, j, n, grid.firstRow(block), grid.rowsOf(block));
                }
            }
        }
    }

    /** Leaves no sliver behind: a library adds it up in another way. */
    private static int tile(int left, int most) {
        return left < most + RowPadding.LEAST_ROWS ? left : most;
    }

    /** An operand of the call under way. */
    private static final class Factor {
        private long address;
        private int stride;
        private boolean transposed;
        private int elementBytes;

        void set(long newAddress, int newStride, boolean isTransposed, int newElementBytes) {
            address = newAddress;
            stride = newStride;
            transposed = isTransposed;
            elementBytes = newElementBytes;
        }

        /** Address of an element. */
        long at(int row, int column) {
            long elements =
                    transposed ? (long) column * stride + row : (long) row * stride + column;
            return address + elements * elementBytes;
        }
    }

    /** The call under way: made once, since an op is dozens of them. */
    private static final class Call implements WorkerPool.Work {
        private final Factor a = new Factor();
        private final Factor b = new Factor();
        private final Factor c = new Factor();
        private final Product[] products;
        private MatrixProduct library;
        private Pieces pieces = Pieces.of(0, 0, 1);
        private int k;
        private boolean accumulate;

        /** Blocks of a weight gradient; null for other products. */
        private @Nullable TokenBlocks blocks;

        Call(MatrixProduct library, int threads) {
            this.library = library;
            this.products = new Product[threads];
            Arrays.setAll(products, Product::new);
        }

        @Override
        public void run(int thread) {
            if (thread < pieces.count()) {
                run(thread, thread);
            }
        }

        void run(int thread, int piece) {
            int row = pieces.firstRow(piece);
            int column = pieces.firstColumn(piece);
            int endRow = pieces.endRow(piece);
            int endColumn = pieces.endColumn(piece);
            TokenBlocks grid = blocks;
            if (grid != null) {
                eachTile(
                        pieces,
                        piece,
                        grid,
                        (i, m, j, n, first, depth) -> multiply(thread, i, m, j, n, first, depth));
            } else if (row < endRow && column < endColumn) {
                multiply(thread, row, endRow - row, column, endColumn - column, 0, k);
            }
        }

        private void multiply(int thread, int row, int m, int column, int n, int first, int depth) {
            library.multiply(
                    products[thread]
                            .of(m, n, depth)
                            .a(a.at(row, first), a.stride, a.transposed)
                            .b(b.at(first, column), b.stride, b.transposed)
                            .to(c.at(row, column), c.stride, accumulate));
        }
    }
}
