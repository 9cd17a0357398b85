package dev.penstock.cuda.device;

/**
 * An op table that computes nothing and counts what the kernels of a device would hold of its
 * memory for themselves. Tensors need no memory: their shapes are looked at alone. Norms are 0,
 * everything is finite. One thread at a time.
 */
public interface CountedKernels extends Kernels {
    /** Bytes held after the ops that were asked for so far: kernels keep what they once took. */
    long bytes();

    /** Such kernels that hold nothing yet. */
    CountedKernels anew();
}
