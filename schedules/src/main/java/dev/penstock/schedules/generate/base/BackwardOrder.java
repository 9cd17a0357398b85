package dev.penstock.schedules.generate.base;

/** In which order GPipe visits the micro-batches on the way back. */
public enum BackwardOrder {
    /** As they came: the same order of sums, and so the same bits, as 1F1B. */
    FIFO,
    /** Last first, as in the original. */
    REVERSE
}
