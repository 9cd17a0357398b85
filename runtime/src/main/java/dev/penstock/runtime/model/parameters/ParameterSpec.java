package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.TensorPiece;

/**
 * A parameter before it has memory.
 *
 * @param name in Hugging Face's GPT-2 naming
 * @param piece what this rank holds of the whole: one dimension for vectors (biases and norms), two
 *     for matrices and tables; strips lie side by side in memory
 * @param initial how it starts
 * @param factor whether matrix products read it (then BF16 runs keep a rounded copy)
 * @param counted whether this rank reports it in norms, state and gradients; parameters held by
 *     several ranks are counted on one of them only
 */
public record ParameterSpec(
        String name, TensorPiece piece, Initial initial, boolean factor, boolean counted) {

    /** The initial values of a parameter. */
    enum Initial {
        /** Zeros: biases, and the outer matrices of adapters. */
        ZERO,
        /** Ones: gains. */
        ONE,
        /** Normal with standard deviation 0.02. */
        NORMAL,
        /** Normal with 0.02 / sqrt(2 L): projections that end in the residual stream. */
        RESIDUAL,
        /** Uniform in +-1 / sqrt(rows), as PEFT begins the inner matrices of adapters. */
        KAIMING
    }

    static ParameterSpec gain(String name, TensorPiece piece) {
        return new ParameterSpec(name, piece, Initial.ONE, false, true);
    }

    static ParameterSpec bias(String name, TensorPiece piece) {
        return new ParameterSpec(name, piece, Initial.ZERO, false, true);
    }

    static ParameterSpec matrix(String name, TensorPiece piece, Initial initial) {
        return new ParameterSpec(name, piece, initial, true, true);
    }

    /** A table whose rows are looked up; never a factor. */
    static ParameterSpec table(String name, TensorPiece piece) {
        return new ParameterSpec(name, piece, Initial.NORMAL, false, true);
    }

    ParameterSpec asFactor() {
        return new ParameterSpec(name, piece, initial, true, counted);
    }

    ParameterSpec countedIf(boolean here) {
        return new ParameterSpec(name, piece, initial, factor, counted && here);
    }

    public boolean vector() {
        return piece.whole().size() == 1;
    }

    public int rows() {
        return piece.strips().getFirst().rows();
    }

    public int columns() {
        return piece.strips().stream().mapToInt(TensorPiece.Strip::columns).sum();
    }
}
