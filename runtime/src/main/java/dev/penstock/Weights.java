package dev.penstock;

/** How the weights of a model that is opened are held. */
public enum Weights {
    /** As numbers of 32 bits. */
    FLOAT32,
    /** Rounded to bf16: half the memory. On CPUs alone. */
    BF16,
    /** Integers of 8 bits with a scale for each row: a quarter of the memory. On CPUs alone. */
    INT8
}
