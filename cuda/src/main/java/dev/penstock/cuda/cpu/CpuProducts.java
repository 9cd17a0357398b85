package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import org.jspecify.annotations.Nullable;

/**
 * Matrix products over all threads: the result is cut into {@link Pieces}, and an element's bits do
 * not depend on the piece it falls into.
 *
 * <p>For products in BF16, F32 factors are first converted into scratch: to BF16 where a library
 * multiplies it, otherwise to F32 that holds the rounded values.
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

    /**
     * @param floats multiplies F32
     * @param bfloats multiplies BF16, if there is such a library and hardware for it
     */
    CpuProducts(
            WorkerPool pool,
            MatrixProduct floats,
            @Nullable MatrixProduct bfloats,
            FactorConverter leftConverter,
            FactorConverter rightConverter) {
        this.pool = pool;
        this.floats = floats;
        this.bfloats = bfloats;
        this.leftConverter = leftConverter;
        this.rightConverter = rightConverter;
    }

    void gemm(
            DType multiply,
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate) {
        int k = transposeA ? a.rows() : a.columns();
        Operand left = factor(multiply, a, transposeA, leftConverter);
        Operand right = factor(multiply, b, transposeB, rightConverter);
        Operand result = Operand.of(c, false);
        MatrixProduct product = product(multiply);
        Pieces pieces = Pieces.of(c.rows(), c.columns(), pool.threads());
        eachPiece(
                pieces,
                k,
                (thread, piece) ->
                        multiply(
                                product,
                                thread,
                                pieces,
                                piece,
                                k,
                                left,
                                right,
                                result,
                                accumulate));
    }

    void weightGradient(DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        Operand left = factor(multiply, x, true, leftConverter);
        Operand right = factor(multiply, dy, false, rightConverter);
        Operand result = Operand.of(dWeight, false);
        MatrixProduct product = product(multiply);
        Pieces pieces = Pieces.of(dWeight.rows(), dWeight.columns(), pool.threads());
        eachPiece(
                pieces,
                blocks.rows(),
                (thread, piece) ->
                        addBlocks(product, thread, pieces, piece, left, right, result, blocks));
    }

    /**
     * All blocks for one tile of a piece after the other: each tile is fetched from memory once.
     */
    private static void addBlocks(
            MatrixProduct product,
            int thread,
            Pieces pieces,
            int piece,
            Operand a,
            Operand b,
            Operand c,
            TokenBlocks blocks) {
        int endRow = pieces.endRow(piece);
        int endColumn = pieces.endColumn(piece);
        for (int i = pieces.firstRow(piece); i < endRow; i += TILE_ROWS) {
            int m = Math.min(TILE_ROWS, endRow - i);
            for (int j = pieces.firstColumn(piece); j < endColumn; j += TILE_COLUMNS) {
                int n = Math.min(TILE_COLUMNS, endColumn - j);
                for (int block = 0; block < blocks.count(); block++) {
                    int first = blocks.firstRow(block);
                    product.multiply(
                            thread,
                            m,
                            n,
                            blocks.rowsOf(block),
                            a.transposed(),
                            a.address(i, first),
                            a.stride(),
                            b.transposed(),
                            b.address(first, j),
                            b.stride(),
                            true,
                            c.address(i, j),
                            c.stride());
                }
            }
        }
    }

    private static void multiply(
            MatrixProduct product,
            int thread,
            Pieces pieces,
            int piece,
            int k,
            Operand a,
            Operand b,
            Operand c,
            boolean accumulate) {
        int row = pieces.firstRow(piece);
        int column = pieces.firstColumn(piece);
        int m = pieces.endRow(piece) - row;
        int n = pieces.endColumn(piece) - column;
        if (m > 0 && n > 0) {
            product.multiply(
                    thread,
                    m,
                    n,
                    k,
                    a.transposed(),
                    a.address(row, 0),
                    a.stride(),
                    b.transposed(),
                    b.address(0, column),
                    b.stride(),
                    accumulate,
                    c.address(row, column),
                    c.stride());
        }
    }

    @FunctionalInterface
    private interface PieceWork {
        void run(int thread, int piece);
    }

    private void eachPiece(Pieces pieces, int k, PieceWork work) {
        long multiplyAdds = (long) pieces.m() * pieces.n() * k;
        if (pieces.count() == 1 || multiplyAdds < WORTH_WAKING) {
            for (int piece = 0; piece < pieces.count(); piece++) {
                work.run(0, piece);
            }
            return;
        }
        pool.run(
                thread -> {
                    if (thread < pieces.count()) {
                        work.run(thread, thread);
                    }
                });
    }

    private MatrixProduct product(DType multiply) {
        return multiply == DType.BF16 && bfloats != null ? bfloats : floats;
    }

    private Operand factor(
            DType multiply, Tensor tensor, boolean transposed, FactorConverter converter) {
        if (multiply == DType.F32) {
            return Operand.of(tensor, transposed);
        }
        if (bfloats == null) {
            return converter.toRoundedFloats(tensor, transposed);
        }
        return tensor.type() == DType.BF16
                ? Operand.of(tensor, transposed)
                : converter.toBFloats(tensor, transposed);
    }
}
