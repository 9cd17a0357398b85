package dev.penstock.benchmarks.roofline;

/**
 * What all launches of a kernel in a step do together.
 *
 * @param kernel its name in the sources, {@code product} for cuBLAS's, {@code zero} for the
 *     driver's clearing
 * @param read bytes out of device memory; what a launch reads twice counts once
 * @param written bytes into it
 * @param operations floating-point operations of products, those of masked scores included where a
 *     tile has them; 0 where memory alone decides
 */
public record Work(
        String kernel, Kind kind, long launches, double read, double written, double operations) {
    /** Which of a card's limits holds, and how near kernels of this kind come to it. */
    public enum Kind {
        ELEMENTS,
        PRODUCTS,
        HEAD_PRODUCTS,
        ATTENTION,
        ATTENTION_BACKWARD
    }

    static Work elements(String kernel, long launches, double read, double written) {
        return new Work(kernel, Kind.ELEMENTS, launches, read, written, 0);
    }

    public double bytes() {
        return read + written;
    }

    public Work plus(Work other) {
        return new Work(
                kernel,
                kind,
                launches + other.launches,
                read + other.read,
                written + other.written,
                operations + other.operations);
    }
}
