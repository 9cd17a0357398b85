package dev.penstock.cuda.cpu;

/**
 * A matrix as products see it.
 *
 * @param address of element (0, 0)
 * @param stride elements from one stored row to the next
 * @param transposed whether stored rows are columns of the matrix
 * @param elementBytes 4 for F32, 2 for BF16
 */
record Operand(long address, int stride, boolean transposed, int elementBytes) {

    static Operand floats(long address, int stride, boolean transposed) {
        return new Operand(address, stride, transposed, Float.BYTES);
    }

    /** Address of the first element of a row; only for matrices that are not transposed. */
    long rowAddress(int row) {
        return address + (long) row * stride * elementBytes;
    }

    /** The matrix from this row on. */
    Operand fromRow(int row) {
        long elements = transposed ? row : (long) row * stride;
        return new Operand(address + elements * elementBytes, stride, transposed, elementBytes);
    }

    /** The matrix from this column on. */
    Operand fromColumn(int column) {
        long elements = transposed ? (long) column * stride : column;
        return new Operand(address + elements * elementBytes, stride, transposed, elementBytes);
    }
}
