package dev.penstock.actors.precision;

/**
 * The rules of a loss scaler. All scales are powers of two, so that scaling is exact and commutes
 * with every rounding.
 *
 * @param dynamic whether the scale changes; else it is {@code initial} for ever
 * @param initial the first scale
 * @param window steps in a row without an overflow after which the scale doubles
 * @param hysteresis overflows since the scale last doubled after which each one halves it
 */
public record LossScaling(boolean dynamic, double initial, int window, int hysteresis) {
    /** The largest scale: a float holds it and its reciprocal without rounding. */
    public static final double MOST = 0x1p126;

    /** A dynamic scale never falls below this. */
    public static final double LEAST = 1;

    public LossScaling {
        if (!isScale(initial) || window < 1 || hysteresis < 1) {
            throw new IllegalArgumentException(
                    "expected a power of two from 1 to 2^126, a window and a hysteresis of at least 1; got %s, %d and %d"
                            .formatted(initial, window, hysteresis));
        }
    }

    /** A scale that never changes. */
    public static LossScaling constant(double scale) {
        return new LossScaling(false, scale, 1, 1);
    }

    /** Returns whether a loss can be multiplied by this. */
    public static boolean isScale(double scale) {
        return scale >= LEAST && scale <= MOST && Math.scalb(1.0, Math.getExponent(scale)) == scale;
    }

    /** The scale below which this scaler never goes. */
    double least() {
        return dynamic ? LEAST : initial;
    }
}
