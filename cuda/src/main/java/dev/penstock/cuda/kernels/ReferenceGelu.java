package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.Gelu;

/** Both forms of GELU, and the slope of each. */
final class ReferenceGelu {
    private static final double SQRT_2_OVER_PI = 0.7978845608028654;
    private static final double CUBIC = 0.044715;

    private ReferenceGelu() {}

    static double value(double x, Gelu form) {
        return switch (form) {
            case TANH -> 0.5 * x * (1 + tanh(x));
            case EXACT -> x * below(x);
        };
    }

    static double slope(double x, Gelu form) {
        return switch (form) {
            case TANH -> {
                double t = tanh(x);
                double inner = SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
                yield 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
            }
            case EXACT -> below(x) + x * density(x);
        };
    }

    private static double tanh(double x) {
        return StrictMath.tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
    }

    /** The standard normal density. */
    private static double density(double x) {
        return StrictMath.exp(-0.5 * x * x) * (0.5 * SQRT_2_OVER_PI);
    }

    /**
     * The share of the standard normal distribution below x, {@code (1 + erf(x / sqrt(2))) / 2}: by
     * the series {@code 1/2 + density (x + x^3/3 + x^5/15 + ...)} near 0, by a continued fraction
     * of the tail beyond (Marsaglia, Evaluating the Normal Distribution).
     */
    private static double below(double x) {
        if (Double.isNaN(x)) {
            return x;
        }
        if (Math.abs(x) > 3) {
            double size = Math.abs(x);
            double fraction = size;
            for (int i = 200; i > 0; i--) {
                fraction = size + i / fraction;
            }
            double tail = density(size) / fraction;
            return x < 0 ? tail : 1 - tail;
        }
        double term = x;
        double sum = x;
        for (int i = 3; Math.abs(term) > 1e-18; i += 2) {
            term *= x * x / i;
            sum += term;
        }
        return 0.5 + density(x) * sum;
    }
}
