package dev.penstock.cuda.kernels;

/** Integers of 8 bits that stand for the floats of a row, with one scale for all of them. */
public final class Int8 {
    private static final int LARGEST = 127;

    private Int8() {}

    /** The scale of a row whose largest magnitude is this. */
    public static float scale(float largest) {
        return largest / LARGEST;
    }

    /** The integer nearest to {@code value / scale}, ties to even; 0 where the scale is 0. */
    public static byte of(float value, float scale) {
        double steps = scale == 0 ? 0 : Math.rint((double) value / scale);
        return (byte) Math.max(-LARGEST, Math.min(LARGEST, steps));
    }
}
