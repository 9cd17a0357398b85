package dev.penstock.cuda.cpu;

/**
 * One product {@code c = a b}, or {@code c += a b}, on one thread: a is {@code m x k}, b {@code k x
 * n}, c {@code m x n}, F32 and not transposed. An op is thousands of products, and objects for
 * their operands would be the heap's heaviest load, so each thread fills the same one again:
 *
 * <pre>
 *   product.of(rows, keys, width).a(queries, stride).bTransposed(keys, stride).to(scores, across)
 * </pre>
 *
 * <p>Operands are addresses of their element (0, 0); a stride counts elements from one stored row
 * to the next.
 */
final class Product {
    /** Index of the thread in the device's pool; scratch is kept per thread. */
    final int thread;

    int m;
    int n;
    int k;
    boolean transposeA;
    long a;
    int strideA;
    boolean transposeB;
    long b;
    int strideB;
    boolean accumulate;
    long c;
    int strideC;

    Product(int thread) {
        this.thread = thread;
    }

    Product of(int rows, int columns, int depth) {
        m = rows;
        n = columns;
        k = depth;
        return this;
    }

    Product a(long address, int stride) {
        return a(address, stride, false);
    }

    Product aTransposed(long address, int stride) {
        return a(address, stride, true);
    }

    Product a(long address, int stride, boolean transposed) {
        a = address;
        strideA = stride;
        transposeA = transposed;
        return this;
    }

    Product b(long address, int stride) {
        return b(address, stride, false);
    }

    Product bTransposed(long address, int stride) {
        return b(address, stride, true);
    }

    Product b(long address, int stride, boolean transposed) {
        b = address;
        strideB = stride;
        transposeB = transposed;
        return this;
    }

    /** Overwrites the result. */
    Product to(long address, int stride) {
        return to(address, stride, false);
    }

    /** Adds to the result. */
    Product addTo(long address, int stride) {
        return to(address, stride, true);
    }

    Product to(long address, int stride, boolean adds) {
        c = address;
        strideC = stride;
        accumulate = adds;
        return this;
    }

    /** Address of an element of a. */
    long ofA(int row, int column) {
        return at(a, strideA, transposeA, row, column);
    }

    /** Address of an element of b. */
    long ofB(int row, int column) {
        return at(b, strideB, transposeB, row, column);
    }

    /** Address of an element of c. */
    long ofC(int row, int column) {
        return at(c, strideC, false, row, column);
    }

    private static long at(long from, int stride, boolean transposed, int row, int column) {
        long elements = transposed ? (long) column * stride + row : (long) row * stride + column;
        return from + elements * Float.BYTES;
    }
}
