package dev.penstock.runtime.checkpoint;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Copies a matrix into another with rows and columns exchanged, block by block: both lie in the
 * cache while they are read across.
 *
 * @param in holds the matrix
 * @param inFirst its first element, of {@code bytes} each
 * @param inStride from one row to the next, in elements
 * @param out gets it
 * @param outFirst first element there
 * @param outStride from one row to the next there
 */
record Exchange(
        MemorySegment in,
        long inFirst,
        long inStride,
        MemorySegment out,
        long outFirst,
        long outStride) {
    private static final int BLOCK = 32;

    /**
     * Copies.
     *
     * @param rows of {@code out}, which are columns of {@code in}
     * @param columns of {@code out}
     * @param bytes of an element, whatever it means
     */
    void copy(int rows, int columns, int bytes) {
        for (int row = 0; row < rows; row += BLOCK) {
            int rowEnd = Math.min(rows, row + BLOCK);
            for (int column = 0; column < columns; column += BLOCK) {
                int columnEnd = Math.min(columns, column + BLOCK);
                switch (bytes) {
                    case Short.BYTES -> shorts(row, rowEnd, column, columnEnd);
                    case Integer.BYTES -> ints(row, rowEnd, column, columnEnd);
                    default -> others(row, rowEnd, column, columnEnd, bytes);
                }
            }
        }
    }

    private long from(int row, int column) {
        return inFirst + column * inStride + row;
    }

    private long to(int row, int column) {
        return outFirst + row * outStride + column;
    }

    private void shorts(int firstRow, int rowEnd, int firstColumn, int columnEnd) {
        for (int row = firstRow; row < rowEnd; row++) {
            for (int column = firstColumn; column < columnEnd; column++) {
                out.set(
                        ValueLayout.JAVA_SHORT_UNALIGNED,
                        2 * to(row, column),
                        in.get(ValueLayout.JAVA_SHORT_UNALIGNED, 2 * from(row, column)));
            }
        }
    }

    private void ints(int firstRow, int rowEnd, int firstColumn, int columnEnd) {
        for (int row = firstRow; row < rowEnd; row++) {
            for (int column = firstColumn; column < columnEnd; column++) {
                out.set(
                        ValueLayout.JAVA_INT_UNALIGNED,
                        4 * to(row, column),
                        in.get(ValueLayout.JAVA_INT_UNALIGNED, 4 * from(row, column)));
            }
        }
    }

    private void others(int firstRow, int rowEnd, int firstColumn, int columnEnd, int bytes) {
        for (int row = firstRow; row < rowEnd; row++) {
            for (int column = firstColumn; column < columnEnd; column++) {
                MemorySegment.copy(
                        in, bytes * from(row, column), out, bytes * to(row, column), bytes);
            }
        }
    }
}
