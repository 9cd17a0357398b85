package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/**
 * Layer norm of one row of {@code n} floats; {@code h = (x - mean) * rstd}. Several passes over a
 * row in the first-level cache, each a small kernel.
 */
final class LayerNormKernels {
    private final Lanes lanes;

    LayerNormKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    float mean(long x, int n) {
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            sum = sum.add(lanes.load(x + 4L * i));
        }
        float total = lanes.sum(sum);
        if (whole < n) {
            total += lanes.sum(lanes.load(x + 4L * whole, lanes.first(n - whole)));
        }
        return total / n;
    }

    /** {@code 1 / sqrt(variance + epsilon)}. */
    float reciprocalDeviation(long x, int n, float mean, float epsilon) {
        return (float) (1 / Math.sqrt(squares(x, n, mean) / n + epsilon));
    }

    /** The sum of the squared distances from the average. */
    float squares(long x, int n, float mean) {
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            FloatVector centred = lanes.load(x + 4L * i).sub(mean);
            sum = centred.fma(centred, sum);
        }
        float total = lanes.sum(sum);
        if (whole < n) {
            total += squaresOfRest(x + 4L * whole, n - whole, mean);
        }
        return total;
    }

    private float squaresOfRest(long x, int n, float mean) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector centred = lanes.load(x, rest).sub(mean, rest);
        return lanes.sum(centred.mul(centred));
    }

    /** {@code y = h * gain + bias}. */
    void apply(long x, long gain, long bias, long y, int n, float mean, float rstd) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector h = lanes.load(x + at).sub(mean).mul(rstd);
            h.fma(lanes.load(gain + at), lanes.load(bias + at))
                    .intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            long at = 4L * whole;
            applyRest(x + at, gain + at, bias + at, y + at, n - whole, mean, rstd);
        }
    }

    private void applyRest(long x, long gain, long bias, long y, int n, float mean, float rstd) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector h = lanes.load(x, rest).sub(mean).mul(rstd);
        lanes.store(h.fma(lanes.load(gain, rest), lanes.load(bias, rest)), y, rest);
    }

    /** The average of {@code g = dy * gain}. */
    float averageG(long dy, long gain, int n) {
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            sum = lanes.load(dy + 4L * i).fma(lanes.load(gain + 4L * i), sum);
        }
        float total = lanes.sum(sum);
        if (whole < n) {
            total += productOfRest(dy + 4L * whole, gain + 4L * whole, n - whole);
        }
        return total / n;
    }

    private float productOfRest(long a, long b, int n) {
        VectorMask<Float> rest = lanes.first(n);
        return lanes.sum(lanes.load(a, rest).mul(lanes.load(b, rest)));
    }

    /** The average of {@code g * h}. */
    float averageGh(long dy, long x, long gain, int n, float mean, float rstd) {
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector g = lanes.load(dy + at).mul(lanes.load(gain + at));
            sum = g.fma(lanes.load(x + at).sub(mean), sum);
        }
        float total = lanes.sum(sum);
        if (whole < n) {
            long at = 4L * whole;
            total += productOfRest(dy + at, x + at, gain + at, n - whole, mean);
        }
        return total * rstd / n;
    }

    private float productOfRest(long dy, long x, long gain, int n, float mean) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector g = lanes.load(dy, rest).mul(lanes.load(gain, rest));
        return lanes.sum(g.mul(lanes.load(x, rest).sub(mean)));
    }

    /** {@code dx += rstd * (g - average(g) - h * average(g h))}. */
    void addInputGradient(
            long dy,
            long x,
            long gain,
            long dx,
            int n,
            float mean,
            float rstd,
            float averageG,
            float averageGh) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector h = lanes.load(x + at).sub(mean).mul(rstd);
            FloatVector g = lanes.load(dy + at).mul(lanes.load(gain + at));
            FloatVector change = g.sub(averageG).sub(h.mul(averageGh)).mul(rstd);
            lanes.load(dx + at).add(change).intoMemorySegment(Addresses.ALL, dx + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 4L * i;
            float h = (Addresses.getFloat(x + at) - mean) * rstd;
            float g = Addresses.getFloat(dy + at) * Addresses.getFloat(gain + at);
            float change = (g - averageG - h * averageGh) * rstd;
            Addresses.setFloat(dx + at, Addresses.getFloat(dx + at) + change);
        }
    }

    /** {@code dGain += h * dy; dBias += dy} for one row. */
    void backwardWeight(long dy, long x, long dGain, long dBias, int n, float mean, float rstd) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector g = lanes.load(dy + at);
            FloatVector h = lanes.load(x + at).sub(mean).mul(rstd);
            h.fma(g, lanes.load(dGain + at))
                    .intoMemorySegment(Addresses.ALL, dGain + at, Lanes.ORDER);
            lanes.load(dBias + at).add(g).intoMemorySegment(Addresses.ALL, dBias + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 4L * i;
            float g = Addresses.getFloat(dy + at);
            float h = (Addresses.getFloat(x + at) - mean) * rstd;
            Addresses.setFloat(dGain + at, Math.fma(h, g, Addresses.getFloat(dGain + at)));
            Addresses.setFloat(dBias + at, Addresses.getFloat(dBias + at) + g);
        }
    }
}
