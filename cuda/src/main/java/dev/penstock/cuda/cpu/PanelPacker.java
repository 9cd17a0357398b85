package dev.penstock.cuda.cpu;

import static dev.penstock.cuda.cpu.vector.Addresses.ALL;
import static dev.penstock.cuda.cpu.vector.Lanes.ORDER;

import dev.penstock.cuda.cpu.vector.Lanes;
import java.util.List;
import java.util.stream.IntStream;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorSpecies;

/**
 * Copies blocks of matrices into the panels that a {@link Tile} reads. What lies beyond the edge of
 * a matrix is never read; panels hold anything there, and the products of it are never stored.
 */
final class PanelPacker {
    private static final VectorSpecies<Float> FOUR = FloatVector.SPECIES_128;

    private final Lanes vectors;
    private final Tile tile;
    private final Transposer transposer;

    /** By their number, masks of the first lanes: made for a call, each would be an object. */
    private final List<VectorMask<Float>> masks;

    PanelPacker(Lanes vectors, Tile tile) {
        this.vectors = vectors;
        this.tile = tile;
        this.transposer = Transposer.of(vectors.species().vectorBitSize());
        this.masks =
                IntStream.rangeClosed(0, vectors.count())
                        .mapToObj(lanes -> vectors.species().indexInRange(0, lanes))
                        .toList();
    }

    private VectorMask<Float> mask(int lanes) {
        return masks.get(Math.clamp(lanes, 0, vectors.count()));
    }

    /**
     * Packs {@code rows x depth} of a, from an element on, into panels {@code [depth][panel rows]}.
     */
    void packA(
            Product product,
            int row,
            int column,
            int rows,
            int depth,
            float[] panels,
            float[] square) {
        long rowBytes = 4L * product.strideA;
        int at = 0;
        int i = 0;
        while (i < rows) {
            int panelRows = tile.panelRows(rows - i);
            int height = Math.min(panelRows, rows - i);
            long from = product.ofA(row + i, column);
            if (product.transposeA && panelRows == 4 && rows - i >= 16) {
                copyFours(from, rowBytes, depth, panels, at);
                at += 16 * depth;
                i += 16;
                continue;
            }
            if (product.transposeA) {
                copyPanel(from, rowBytes, depth, height, panelRows, panels, at);
            } else {
                transposer.panel(from, rowBytes, depth, height, panelRows, panels, at, square);
            }
            at += panelRows * depth;
            i += height;
        }
    }

    /**
     * Packs {@code depth x columns} of b, from an element on, into panels {@code [depth][tile
     * columns]}.
     */
    void packB(
            Product product,
            int row,
            int column,
            int depth,
            int columns,
            float[] panels,
            float[] square) {
        long rowBytes = 4L * product.strideB;
        int width = tile.columns();
        for (int j = 0; j < columns; j += width) {
            int used = Math.min(width, columns - j);
            long from = product.ofB(row, column + j);
            int at = j * depth;
            if (product.transposeB) {
                int lanes = vectors.count();
                int first = Math.min(used, lanes);
                transposer.panel(from, rowBytes, depth, first, width, panels, at, square);
                if (used > lanes) {
                    long right = product.ofB(row, column + j + lanes);
                    int second = used - lanes;
                    transposer.panel(
                            right, rowBytes, depth, second, width, panels, at + lanes, square);
                }
            } else {
                copyPanel(from, rowBytes, depth, used, width, panels, at);
            }
        }
    }

    /** Four panels of four columns: of each row a cache line, which would be fetched four times. */
    private static void copyFours(
            long address, long rowBytes, int depth, float[] panels, int panelAt) {
        long from = address;
        int to = panelAt;
        for (int p = 0; p < depth; p++) {
            FloatVector.fromMemorySegment(FOUR, ALL, from, ORDER).intoArray(panels, to);
            FloatVector.fromMemorySegment(FOUR, ALL, from + 16, ORDER)
                    .intoArray(panels, to + 4 * depth);
            FloatVector.fromMemorySegment(FOUR, ALL, from + 32, ORDER)
                    .intoArray(panels, to + 8 * depth);
            FloatVector.fromMemorySegment(FOUR, ALL, from + 48, ORDER)
                    .intoArray(panels, to + 12 * depth);
            from += rowBytes;
            to += 4;
        }
    }

    /** Panel rows that lie in memory as they are: {@code depth} runs of {@code used} floats. */
    private void copyPanel(
            long from, long rowBytes, int depth, int used, int width, float[] panel, int panelAt) {
        int lanes = vectors.count();
        if (width == 2 * lanes && used == width) {
            copyWhole(from, rowBytes, depth, panel, panelAt);
        } else if (width == 2 * lanes) {
            copyPart(from, rowBytes, depth, panel, panelAt, mask(used), mask(used - lanes));
        } else {
            copyNarrow(from, rowBytes, depth, width, panel, panelAt, mask(used));
        }
    }

    private void copyWhole(long address, long rowBytes, int depth, float[] panel, int panelAt) {
        VectorSpecies<Float> s = vectors.species();
        int lanes = s.length();
        long from = address;
        int to = panelAt;
        for (int p = 0; p < depth; p++) {
            vectors.load(from).intoArray(panel, to);
            vectors.load(from + 4L * lanes).intoArray(panel, to + lanes);
            from += rowBytes;
            to += 2 * lanes;
        }
    }

    private void copyPart(
            long address,
            long rowBytes,
            int depth,
            float[] panel,
            int panelAt,
            VectorMask<Float> first,
            VectorMask<Float> second) {
        VectorSpecies<Float> s = vectors.species();
        int lanes = s.length();
        long from = address;
        int to = panelAt;
        for (int p = 0; p < depth; p++) {
            vectors.load(from, first).intoArray(panel, to);
            vectors.load(from + 4L * lanes, second).intoArray(panel, to + lanes);
            from += rowBytes;
            to += 2 * lanes;
        }
    }

    /** Panels narrower than a vector: each store spills into the next row, which comes after. */
    private void copyNarrow(
            long address,
            long rowBytes,
            int depth,
            int width,
            float[] panel,
            int panelAt,
            VectorMask<Float> mask) {
        long from = address;
        int to = panelAt;
        for (int p = 0; p < depth; p++) {
            vectors.load(from, mask).intoArray(panel, to);
            from += rowBytes;
            to += width;
        }
    }
}
