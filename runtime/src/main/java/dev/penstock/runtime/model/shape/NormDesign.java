package dev.penstock.runtime.model.shape;

/**
 * A kind of norm over the columns of a row.
 *
 * @param epsilon added to the mean of squares before the root is taken
 */
public record NormDesign(Kind kind, double epsilon) {
    /** GPT-2's. */
    public static final NormDesign GPT2 = new NormDesign(Kind.LAYER, 1e-5);

    /** The kinds of norm. */
    public enum Kind {
        /** Subtracts the mean; has gains and biases. */
        LAYER,
        /** Divides by the root of the mean square alone; has gains. */
        RMS
    }

    public NormDesign {
        if (!(epsilon > 0) || epsilon > 1) {
            throw new IllegalArgumentException(
                    "expected an epsilon above 0 and up to 1, got " + epsilon);
        }
    }

    /** Returns whether there is a bias besides the gain. */
    public boolean hasBias() {
        return kind == Kind.LAYER;
    }

    /** Returns the parameter count of a norm. */
    public long parameters(long width) {
        return hasBias() ? 2 * width : width;
    }
}
