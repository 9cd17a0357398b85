package dev.penstock.cuda.kernels;

/** GELU, tanh form: {@code x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))}. */
final class ReferenceGelu {
    private static final double SQRT_2_OVER_PI = 0.7978845608028654;
    private static final double CUBIC = 0.044715;

    private ReferenceGelu() {}

    static double value(double x) {
        return 0.5 * x * (1 + tanh(x));
    }

    static double slope(double x) {
        double t = tanh(x);
        double inner = SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
    }

    private static double tanh(double x) {
        return StrictMath.tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
    }
}
