package dev.penstock.cuda.kernels;

/** bfloat16: the upper half of a float. */
public final class BFloat16 {
    private BFloat16() {}

    /** Rounds to nearest, ties to even; NaN stays NaN. */
    public static short fromFloat(float value) {
        int bits = Float.floatToRawIntBits(value);
        if (Float.isNaN(value)) {
            return (short) ((bits >>> 16) | 0x40);
        }
        return (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
    }

    /** Exact. */
    public static float toFloat(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    /** The nearest value that bfloat16 can hold. */
    public static float round(float value) {
        return toFloat(fromFloat(value));
    }
}
