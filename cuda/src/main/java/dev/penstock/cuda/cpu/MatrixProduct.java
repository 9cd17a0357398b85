package dev.penstock.cuda.cpu;

/** One product on one thread. */
interface MatrixProduct {
    /**
     * {@code c = a b}, or {@code c += a b}, in F32: a is {@code m x k}, b {@code k x n}, c {@code m
     * x n} and not transposed. Operands come as bare addresses: there are thousands of products in
     * an op, and objects for their operands would be the heap's heaviest load.
     *
     * @param thread index of the calling thread in the device's pool; scratch is kept per thread
     * @param strideA elements from one stored row of a to the next, as in {@link Operand}
     */
    void multiply(
            int thread,
            int m,
            int n,
            int k,
            boolean transposeA,
            long a,
            int strideA,
            boolean transposeB,
            long b,
            int strideB,
            boolean accumulate,
            long c,
            int strideC);
}
