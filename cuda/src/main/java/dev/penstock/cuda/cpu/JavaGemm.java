package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Matrix products in Java: blocks of both factors are packed into panels on the heap, and a {@link
 * Tile} multiplies panel by panel. Whatever the blocking, each element is the scalar chain {@code c
 * = fma(a, b, c)} with k ascending: the bits of an element depend on its row of a and its column of
 * b only.
 */
final class JavaGemm implements MatrixProduct {
    /** Depth of a block: a panel of b (columns x depth) stays in the first-level cache. */
    private static final int DEPTH = 256;

    /** Rows of a block: the packed block of a stays in the second-level cache. */
    private static final int ROWS = 192;

    /** Columns of a block: the packed block of b stays in the last-level cache. */
    private static final int COLUMNS = 768;

    private final Tile tile;
    private final PanelPacker packer;
    private final Scratch[] scratch;

    /** A row of a tile, where a product begins. */
    private final MemorySegment zeros;

    /** Packed panels and a tile of c, one set per thread. */
    private record Scratch(float[] a, float[] b, MemorySegment c, float[] square) {}

    JavaGemm(Lanes vectors, int threads) {
        this.tile = Tile.of(vectors.species().vectorBitSize());
        this.packer = new PanelPacker(vectors, tile);
        this.scratch = new Scratch[threads];
        this.zeros = Arena.ofAuto().allocate(4L * tile.columns(), 64);
        int lanes = vectors.count();
        for (int i = 0; i < threads; i++) {
            scratch[i] =
                    new Scratch(
                            new float[(ROWS + tile.highRows()) * DEPTH + lanes],
                            new float[(COLUMNS + tile.columns()) * DEPTH + lanes],
                            Arena.ofAuto().allocate(4L * tile.highRows() * tile.columns(), 64),
                            new float[lanes * lanes]);
        }
    }

    @Override
    public void multiply(Product product) {
        Scratch s = scratch[product.thread];
        int m = product.m;
        int n = product.n;
        int k = product.k;
        boolean accumulate = product.accumulate;
        for (int j = 0; j < n; j += COLUMNS) {
            int columns = Math.min(COLUMNS, n - j);
            for (int p = 0; p < k; p += DEPTH) {
                int depth = Math.min(DEPTH, k - p);
                packer.packB(product, p, j, depth, columns, s.b, s.square);
                for (int i = 0; i < m; i += ROWS) {
                    int rows = Math.min(ROWS, m - i);
                    packer.packA(product, i, p, rows, depth, s.a, s.square);
                    long block = product.ofC(i, j);
                    multiplyBlock(
                            s,
                            rows,
                            columns,
                            depth,
                            block,
                            4L * product.strideC,
                            accumulate || p > 0);
                }
            }
        }
        if (k == 0 && !accumulate) {
            for (int i = 0; i < m; i++) {
                Addresses.clear(product.ofC(i, 0), 4L * n);
            }
        }
    }

    private void multiplyBlock(
            Scratch s,
            int rows,
            int columns,
            int depth,
            long c,
            long rowBytes,
            boolean accumulate) {
        long tileRowBytes = 4L * tile.columns();
        for (int j = 0; j < columns; j += tile.columns()) {
            int width = Math.min(tile.columns(), columns - j);
            long at = c + 4L * j;
            int panel = 0;
            int i = 0;
            while (i < rows) {
                int panelRows = tile.panelRows(rows - i);
                int height = Math.min(panelRows, rows - i);
                long to = at + i * rowBytes;
                if (height == panelRows && width == tile.columns()) {
                    multiplyTile(s, panelRows, depth, panel, j * depth, to, rowBytes, accumulate);
                } else {
                    long scratchC = s.c.address();
                    if (accumulate) {
                        copyTile(to, rowBytes, scratchC, tileRowBytes, height, width);
                    }
                    multiplyTile(
                            s,
                            panelRows,
                            depth,
                            panel,
                            j * depth,
                            scratchC,
                            tileRowBytes,
                            accumulate);
                    copyTile(scratchC, tileRowBytes, to, rowBytes, height, width);
                }
                panel += panelRows * depth;
                i += height;
            }
        }
    }

    private void multiplyTile(
            Scratch s,
            int panelRows,
            int depth,
            int panel,
            int columnPanel,
            long c,
            long rowBytes,
            boolean accumulate) {
        long from = accumulate ? c : zeros.address();
        long step = accumulate ? rowBytes : 0;
        if (panelRows == tile.highRows()) {
            tile.high(depth, s.a, panel, s.b, columnPanel, from, step, c, rowBytes);
        } else {
            tile.low(depth, s.a, panel, s.b, columnPanel, from, step, c, rowBytes);
        }
    }

    private static void copyTile(
            long from, long fromRowBytes, long to, long toRowBytes, int height, int width) {
        for (int i = 0; i < height; i++) {
            Addresses.copy(from + i * fromRowBytes, to + i * toRowBytes, 4L * width);
        }
    }
}
