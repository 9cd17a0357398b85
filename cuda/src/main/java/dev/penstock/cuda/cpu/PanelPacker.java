package dev.penstock.cuda.cpu;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorSpecies;

/**
 * Copies blocks of matrices into the panels that a {@link Tile} reads, and tiles of the result in
 * and out. What lies beyond the edge of a matrix is never read; panels hold anything there, and the
 * products of it are never stored.
 */
final class PanelPacker {
    private final Lanes vectors;
    private final Tile tile;
    private final Transposer transposer;

    PanelPacker(Lanes vectors, Tile tile) {
        this.vectors = vectors;
        this.tile = tile;
        this.transposer = new Transposer(vectors);
    }

    /** Packs {@code rows x depth} of a into panels {@code [depth][panel rows]}. */
    void packA(Operand a, int rows, int depth, float[] panels, float[] square) {
        int at = 0;
        int i = 0;
        while (i < rows) {
            int panelRows = tile.panelRows(rows - i);
            int height = Math.min(panelRows, rows - i);
            Operand part = a.fromRow(i);
            if (a.transposed()) {
                copyPanel(part, depth, height, panelRows, panels, at);
            } else {
                transposePanel(part, depth, height, panelRows, panels, at, square);
            }
            at += panelRows * depth;
            i += height;
        }
    }

    /** Packs {@code depth x columns} of b into panels {@code [depth][tile columns]}. */
    void packB(Operand b, int depth, int columns, float[] panels, float[] square) {
        int width = tile.columns();
        for (int j = 0; j < columns; j += width) {
            int used = Math.min(width, columns - j);
            Operand part = b.fromColumn(j);
            if (b.transposed()) {
                int lanes = vectors.count();
                int first = Math.min(used, lanes);
                transposePanel(part, depth, first, width, panels, j * depth, square);
                if (used > lanes) {
                    Operand right = part.fromColumn(lanes);
                    int second = used - lanes;
                    transposePanel(right, depth, second, width, panels, j * depth + lanes, square);
                }
            } else {
                copyPanel(part, depth, used, width, panels, j * depth);
            }
        }
    }

    /** Panel rows that lie in memory as they are: {@code depth} runs of {@code used} floats. */
    private void copyPanel(
            Operand from, int depth, int used, int width, float[] panel, int panelAt) {
        VectorSpecies<Float> species = vectors.species();
        int lanes = species.length();
        VectorMask<Float> first = species.indexInRange(0, used);
        VectorMask<Float> second = species.indexInRange(lanes, used);
        long rowBytes = 4L * from.stride();
        if (width == 2 * lanes && used == width) {
            copyWhole(from.address(), rowBytes, depth, panel, panelAt);
        } else if (width == 2 * lanes) {
            copyPart(from.address(), rowBytes, depth, panel, panelAt, first, second);
        } else {
            copyNarrow(from.address(), rowBytes, depth, width, panel, panelAt, first);
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
        VectorSpecies<Float> s = vectors.species();
        long from = address;
        int to = panelAt;
        for (int p = 0; p < depth; p++) {
            vectors.load(from, mask).intoArray(panel, to);
            from += rowBytes;
            to += width;
        }
    }

    /** Panel columns that lie in memory as rows: {@code used} runs of {@code depth} floats. */
    private void transposePanel(
            Operand from,
            int depth,
            int used,
            int width,
            float[] panel,
            int panelAt,
            float[] square) {
        int lanes = vectors.count();
        long rowBytes = 4L * from.stride();
        int p = 0;
        for (; p + lanes <= depth; p += lanes) {
            transposer.transpose(
                    from.address() + 4L * p,
                    rowBytes,
                    used,
                    square,
                    panel,
                    panelAt + p * width,
                    width);
        }
        for (; p < depth; p++) {
            for (int i = 0; i < used; i++) {
                panel[panelAt + p * width + i] =
                        Addresses.getFloat(from.address() + i * rowBytes + 4L * p);
            }
        }
    }

    void loadWhole(float[] c, long address, long rowBytes, int height) {
        copyWhole(address, rowBytes, height, c, 0);
    }

    void loadPart(float[] c, long address, long rowBytes, int height, int width) {
        VectorSpecies<Float> s = vectors.species();
        VectorMask<Float> first = s.indexInRange(0, width);
        VectorMask<Float> second = s.indexInRange(s.length(), width);
        copyPart(address, rowBytes, height, c, 0, first, second);
    }

    void storeWhole(float[] c, long address, long rowBytes, int height) {
        VectorSpecies<Float> s = vectors.species();
        int lanes = s.length();
        long to = address;
        for (int i = 0; i < height; i++) {
            vectors.store(FloatVector.fromArray(s, c, 2 * lanes * i), to);
            vectors.store(FloatVector.fromArray(s, c, 2 * lanes * i + lanes), to + 4L * lanes);
            to += rowBytes;
        }
    }

    void storePart(float[] c, long address, long rowBytes, int height, int width) {
        VectorSpecies<Float> s = vectors.species();
        int lanes = s.length();
        VectorMask<Float> first = s.indexInRange(0, width);
        VectorMask<Float> second = s.indexInRange(lanes, width);
        long to = address;
        for (int i = 0; i < height; i++) {
            vectors.store(FloatVector.fromArray(s, c, 2 * lanes * i), to, first);
            vectors.store(
                    FloatVector.fromArray(s, c, 2 * lanes * i + lanes), to + 4L * lanes, second);
            to += rowBytes;
        }
    }
}
