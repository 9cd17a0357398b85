package dev.penstock.cuda.cpu.vector;

import static jdk.incubator.vector.VectorOperators.FMA;
import static jdk.incubator.vector.VectorOperators.LSHL;

import jdk.incubator.vector.FloatVector;

/**
 * exp, tanh and the normal distribution by fixed polynomials of FMAs, relative error about 1e-7.
 * The library's own {@code lanewise(EXP)} changes bits when code gets compiled; these do not. NaN
 * stays NaN.
 */
public final class VectorMath {
    private static final float LOG2_E = 1.44269504f;

    /** Adding it leaves the nearest integer in the low bits of the mantissa. */
    private static final float ROUND = 12582912f;

    /** ln 2 in two parts; the first has few bits, so that its multiples are exact. */
    private static final float LN2_HIGH = 0.693359375f;

    private static final float LN2_LOW = -2.12194440e-4f;

    /** Beyond these, results would leave the normal range. */
    private static final float LOWEST = -87.3f;

    private static final float HIGHEST = 88.3f;

    private VectorMath() {}

    /** {@code x = n ln 2 + r}; {@code exp(x) = 2^n exp(r)}, exp(r) by a polynomial (Cephes). */
    public static FloatVector exp(FloatVector x) {
        FloatVector bounded = x.max(LOWEST).min(HIGHEST);
        FloatVector shifted = bounded.fma(LOG2_E, ROUND);
        FloatVector n = shifted.sub(ROUND);
        FloatVector r = n.lanewise(FMA, -LN2_HIGH, bounded);
        r = n.lanewise(FMA, -LN2_LOW, r);
        FloatVector p = r.fma(1.9875691500e-4f, 1.3981999507e-3f);
        p = p.lanewise(FMA, r, 8.3334519073e-3f);
        p = p.lanewise(FMA, r, 4.1665795894e-2f);
        p = p.lanewise(FMA, r, 1.6666665459e-1f);
        p = p.lanewise(FMA, r, 5.0000001201e-1f);
        p = p.fma(r.mul(r), r).add(1f);
        return p.reinterpretAsInts()
                .add(shifted.reinterpretAsInts().lanewise(LSHL, 23))
                .reinterpretAsFloats();
    }

    /** The bits of a lane of {@link #exp(FloatVector)}. */
    public static float exp(float x) {
        float bounded = Math.min(Math.max(x, LOWEST), HIGHEST);
        float shifted = Math.fma(bounded, LOG2_E, ROUND);
        float n = shifted - ROUND;
        float r = Math.fma(n, -LN2_HIGH, bounded);
        r = Math.fma(n, -LN2_LOW, r);
        float p = Math.fma(r, 1.9875691500e-4f, 1.3981999507e-3f);
        p = Math.fma(p, r, 8.3334519073e-3f);
        p = Math.fma(p, r, 4.1665795894e-2f);
        p = Math.fma(p, r, 1.6666665459e-1f);
        p = Math.fma(p, r, 5.0000001201e-1f);
        p = Math.fma(p, r * r, r) + 1f;
        int power = Float.floatToRawIntBits(shifted) << 23;
        return Float.intBitsToFloat(Float.floatToRawIntBits(p) + power);
    }

    /** {@code tanh(x)} of {@code exp(2x)}; exact to about 1e-7 absolute. */
    public static FloatVector tanhOf(FloatVector exp) {
        return exp.sub(1f).div(exp.add(1f));
    }

    /**
     * The share of the standard normal distribution beyond x: {@code exp(-x^2 / 2) t P(t)} with
     * {@code t = 1 / (1 + 0.29 x)}. P was fitted to the quotient of the other factors; its error is
     * below 1e-8 of the result near 0 and grows to 1e-5 of it where the result is below 1e-15.
     *
     * @param x 0 or more
     * @param exp {@code exp(-x^2 / 2)}
     */
    public static FloatVector normalTail(FloatVector x, FloatVector exp) {
        FloatVector below = x.mul(0.29f).add(1f);
        FloatVector t = below.broadcast(1f).div(below);
        FloatVector p = t.fma(0.03844524174928665f, -0.18777450919151306f);
        p = p.lanewise(FMA, t, 0.2938743531703949f);
        p = p.lanewise(FMA, t, -0.1348617672920227f);
        p = p.lanewise(FMA, t, 0.17260263860225677f);
        p = p.lanewise(FMA, t, 0.08324335515499115f);
        p = p.lanewise(FMA, t, 0.11897489428520203f);
        p = p.lanewise(FMA, t, 0.11549580097198486f);
        return p.mul(t).mul(exp);
    }
}
