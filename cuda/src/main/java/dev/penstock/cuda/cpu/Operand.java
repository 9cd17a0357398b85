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

    /** Address of the first element of a stored row. */
    long rowAddress(int row) {
        return address + (long) row * stride * elementBytes;
    }
}
