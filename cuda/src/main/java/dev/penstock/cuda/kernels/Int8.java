package dev.penstock.cuda.kernels;

/** Integers of 8 bits that stand for the floats of a row, with one scale for all of them. */
public final class Int8 {
    private static final int LARGEST = 127;

    /** The bits of a float's fraction that a scale does not use. */
    private static final int UNUSED = (1 << 8) - 1;

    private Int8() {}

    /**
     * The scale of a row whose largest magnitude is this. It has 16 significant bits, so that an
     * integer times it is a float: a row that was rounded once, widened and rounded again has the
     * same integers and the same scale.
     */
    public static float scale(float largest) {
        int bits = Float.floatToRawIntBits(largest / LARGEST);
        return Float.intBitsToFloat(bits & ~UNUSED);
    }

    /** The integer nearest to {@code value / scale}, ties to even; 0 where the scale is 0. */
    public static byte of(float value, float scale) {
        double steps = scale == 0 ? 0 : Math.rint((double) value / scale);
        return (byte) Math.max(-LARGEST, Math.min(LARGEST, steps));
    }
}
