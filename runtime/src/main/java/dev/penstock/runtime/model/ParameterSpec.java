package dev.penstock.runtime.model;

import dev.penstock.actors.spi.TensorPiece;
import java.util.List;

/**
 * A parameter before it has memory.
 *
 * @param name in Hugging Face's GPT-2 naming
 * @param shape one dimension for vectors (biases and norms), two for matrices and tables
 * @param initial how it starts
 * @param factor whether matrix products read it (then BF16 runs keep a rounded copy)
 * @param counted whether this stage reports it in norms, state and gradients; a shared parameter is
 *     counted on one stage only
 */
record ParameterSpec(
        String name, List<Integer> shape, Initial initial, boolean factor, boolean counted) {

    /** How a parameter starts. */
    enum Initial {
        /** Zeros: biases. */
        ZERO,
        /** Ones: gains. */
        ONE,
        /** Normal with standard deviation 0.02. */
        NORMAL,
        /** Normal with 0.02 / sqrt(2 L): projections that end in the residual stream. */
        RESIDUAL
    }

    static ParameterSpec gain(String name, int width) {
        return new ParameterSpec(name, List.of(width), Initial.ONE, false, true);
    }

    static ParameterSpec bias(String name, int width) {
        return new ParameterSpec(name, List.of(width), Initial.ZERO, false, true);
    }

    static ParameterSpec matrix(String name, int rows, int columns, Initial initial) {
        return new ParameterSpec(name, List.of(rows, columns), initial, true, true);
    }

    /** A table whose rows are looked up; never a factor. */
    static ParameterSpec table(String name, int rows, int columns) {
        return new ParameterSpec(name, List.of(rows, columns), Initial.NORMAL, false, true);
    }

    ParameterSpec asFactor() {
        return new ParameterSpec(name, shape, initial, true, counted);
    }

    ParameterSpec uncounted() {
        return new ParameterSpec(name, shape, initial, factor, false);
    }

    /** What this rank holds of it. */
    TensorPiece piece() {
        return TensorPiece.all(shape);
    }

    boolean vector() {
        return shape.size() == 1;
    }

    int rows() {
        return vector() ? 1 : shape.getFirst();
    }

    int columns() {
        return shape.getLast();
    }

    /** Bytes of the elements as F32. */
    long bytes() {
        return (long) rows() * columns() * Float.BYTES;
    }
}
