package dev.penstock.runtime.model.shape;

/** How the gradients of a step's micro-batches are added up. */
public enum GradientSum {
    /** In F32, in the order of the program, and then over replicas in the order of ranks. */
    FLOAT32,
    /**
     * Each micro-batch's by itself in F32, and those exactly, in 64-bit integers: the bits do not
     * depend on which replica computed which micro-batch, nor on the order.
     */
    FIXED_POINT
}
