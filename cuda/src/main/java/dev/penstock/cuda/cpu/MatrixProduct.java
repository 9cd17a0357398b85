package dev.penstock.cuda.cpu;

/** One product on one thread. */
interface MatrixProduct {
    /**
     * {@code c = a b}, or {@code c += a b}, in F32.
     *
     * @param thread index of the calling thread in the device's pool; scratch is kept per thread
     * @param a {@code m x k}
     * @param b {@code k x n}
     * @param c {@code m x n}, not transposed
     */
    void multiply(
            int thread, int m, int n, int k, Operand a, Operand b, Operand c, boolean accumulate);
}
