package dev.penstock.cuda.cpu;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/**
 * Layer norm of one row of {@code n} floats; {@code h = (x - mean) * rstd}.
 *
 * <p>Beyond the row's end, partial vectors hold zeros, which the sums must not see as {@code
 * -mean}: hence the masked subtraction.
 */
final class LayerNormKernels {
    private static final float EPSILON = 1e-5f;

    private final Lanes lanes;

    LayerNormKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    float mean(long x, int n) {
        FloatVector sum = lanes.zero();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            sum = sum.add(lanes.load(x + 4L * i));
        }
        sum = sum.add(lanes.load(x + 4L * whole, lanes.rest(n)));
        return lanes.sum(sum) / n;
    }

    /** {@code 1 / sqrt(variance + 1e-5)}. */
    float reciprocalDeviation(long x, int n, float mean) {
        FloatVector sum = lanes.zero();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            FloatVector centred = lanes.load(x + 4L * i).sub(mean);
            sum = centred.fma(centred, sum);
        }
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector centred = lanes.load(x + 4L * whole, rest).sub(mean, rest);
        sum = centred.fma(centred, sum);
        return (float) (1 / Math.sqrt(lanes.sum(sum) / n + EPSILON));
    }

    /** {@code y = h * gain + bias}. */
    void apply(long x, long gain, long bias, long y, int n, float mean, float rstd) {
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            FloatVector h = lanes.load(x + at).sub(mean).mul(rstd);
            lanes.store(h.fma(lanes.load(gain + at), lanes.load(bias + at)), y + at);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector h = lanes.load(x + at, rest).sub(mean).mul(rstd);
        FloatVector result = h.fma(lanes.load(gain + at, rest), lanes.load(bias + at, rest));
        lanes.store(result, y + at, rest);
    }

    /** {@code dx += rstd * (g - average(g) - h * average(g h))} with {@code g = dy * gain}. */
    void backwardInput(long dy, long x, long gain, long dx, int n, float mean, float rstd) {
        FloatVector sum = lanes.zero();
        FloatVector product = lanes.zero();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            FloatVector g = lanes.load(dy + at).mul(lanes.load(gain + at));
            sum = sum.add(g);
            product = g.fma(lanes.load(x + at).sub(mean).mul(rstd), product);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector g = lanes.load(dy + at, rest).mul(lanes.load(gain + at, rest));
        sum = sum.add(g);
        product = g.fma(lanes.load(x + at, rest).sub(mean).mul(rstd), product);
        float averageG = lanes.sum(sum) / n;
        float averageGh = lanes.sum(product) / n;
        addInputGradient(dy, x, gain, dx, n, mean, rstd, averageG, averageGh);
    }

    private void addInputGradient(
            long dy,
            long x,
            long gain,
            long dx,
            int n,
            float mean,
            float rstd,
            float averageG,
            float averageGh) {
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            FloatVector h = lanes.load(x + at).sub(mean).mul(rstd);
            FloatVector g = lanes.load(dy + at).mul(lanes.load(gain + at));
            FloatVector change = g.sub(averageG).sub(h.mul(averageGh)).mul(rstd);
            lanes.store(lanes.load(dx + at).add(change), dx + at);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector h = lanes.load(x + at, rest).sub(mean).mul(rstd);
        FloatVector g = lanes.load(dy + at, rest).mul(lanes.load(gain + at, rest));
        FloatVector change = g.sub(averageG).sub(h.mul(averageGh)).mul(rstd);
        lanes.store(lanes.load(dx + at, rest).add(change), dx + at, rest);
    }

    /** {@code dGain += h * dy; dBias += dy} for one row. */
    void backwardWeight(long dy, long x, long dGain, long dBias, int n, float mean, float rstd) {
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            FloatVector g = lanes.load(dy + at);
            FloatVector h = lanes.load(x + at).sub(mean).mul(rstd);
            lanes.store(h.fma(g, lanes.load(dGain + at)), dGain + at);
            lanes.store(lanes.load(dBias + at).add(g), dBias + at);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector g = lanes.load(dy + at, rest);
        FloatVector h = lanes.load(x + at, rest).sub(mean).mul(rstd);
        lanes.store(h.fma(g, lanes.load(dGain + at, rest)), dGain + at, rest);
        lanes.store(lanes.load(dBias + at, rest).add(g), dBias + at, rest);
    }
}
