package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/**
 * Norm by the root of the average square of {@code n} floats, a row or a head of it; {@code h = x *
 * r}. Several passes over what lies in the first-level cache, each a small kernel.
 */
final class RmsNormKernels {
    private final Lanes lanes;

    RmsNormKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /** {@code r = 1 / sqrt(average of x^2 + epsilon)}. */
    float reciprocalRoot(long x, int n, float epsilon) {
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            FloatVector value = lanes.load(x + 4L * i);
            sum = value.fma(value, sum);
        }
        float total = lanes.sum(sum);
        if (whole < n) {
            FloatVector rest = lanes.load(x + 4L * whole, lanes.first(n - whole));
            total += lanes.sum(rest.mul(rest));
        }
        return (float) (1 / Math.sqrt(total / n + epsilon));
    }

    /** {@code y = h * gain}. */
    void apply(long x, long gain, long y, int n, float r) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            lanes.load(x + at)
                    .mul(r)
                    .mul(lanes.load(gain + at))
                    .intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            long at = 4L * whole;
            applyRest(x + at, gain + at, y + at, n - whole, r);
        }
    }

    private void applyRest(long x, long gain, long y, int n, float r) {
        VectorMask<Float> rest = lanes.first(n);
        lanes.store(lanes.load(x, rest).mul(r).mul(lanes.load(gain, rest)), y, rest);
    }

    /** The average of {@code dy * gain * h}. */
    float averageGh(long dy, long x, long gain, int n, float r) {
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector g = lanes.load(dy + at).mul(lanes.load(gain + at));
            sum = g.fma(lanes.load(x + at), sum);
        }
        float total = lanes.sum(sum);
        if (whole < n) {
            long at = 4L * whole;
            total += productOfRest(dy + at, x + at, gain + at, n - whole);
        }
        return total * r / n;
    }

    private float productOfRest(long dy, long x, long gain, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector g = lanes.load(dy, rest).mul(lanes.load(gain, rest));
        return lanes.sum(g.mul(lanes.load(x, rest)));
    }

    /** {@code dx += r * (dy * gain - h * average(g h))}. */
    void addInputGradient(long dy, long x, long gain, long dx, int n, float r, float averageGh) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector h = lanes.load(x + at).mul(r);
            FloatVector g = lanes.load(dy + at).mul(lanes.load(gain + at));
            FloatVector change = g.sub(h.mul(averageGh)).mul(r);
            lanes.load(dx + at).add(change).intoMemorySegment(Addresses.ALL, dx + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 4L * i;
            float change = change(dy + at, x + at, gain + at, r, averageGh);
            Addresses.setFloat(dx + at, Addresses.getFloat(dx + at) + change);
        }
    }

    /** {@code dx = r * (dy * gain - h * average(g h))}. */
    void setInputGradient(long dy, long x, long gain, long dx, int n, float r, float averageGh) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector h = lanes.load(x + at).mul(r);
            FloatVector g = lanes.load(dy + at).mul(lanes.load(gain + at));
            g.sub(h.mul(averageGh)).mul(r).intoMemorySegment(Addresses.ALL, dx + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 4L * i;
            Addresses.setFloat(dx + at, change(dy + at, x + at, gain + at, r, averageGh));
        }
    }

    private static float change(long dy, long x, long gain, float r, float averageGh) {
        float h = Addresses.getFloat(x) * r;
        float g = Addresses.getFloat(dy) * Addresses.getFloat(gain);
        return (g - h * averageGh) * r;
    }

    /** {@code dGain += h * dy}. */
    void backwardWeight(long dy, long x, long dGain, int n, float r) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector h = lanes.load(x + at).mul(r);
            h.fma(lanes.load(dy + at), lanes.load(dGain + at))
                    .intoMemorySegment(Addresses.ALL, dGain + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 4L * i;
            float h = Addresses.getFloat(x + at) * r;
            float sum = Addresses.getFloat(dGain + at);
            Addresses.setFloat(dGain + at, Math.fma(h, Addresses.getFloat(dy + at), sum));
        }
    }
}
