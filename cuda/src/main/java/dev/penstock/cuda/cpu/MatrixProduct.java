package dev.penstock.cuda.cpu;

/** Multiplies matrices, each product on the thread that asks for it. */
interface MatrixProduct {
    /** Computes a product, which is not kept. */
    void multiply(Product product);
}
