package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/** What retention does with rows between its products. */
final class RetentionKernels {
    private final Lanes lanes;

    RetentionKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /** {@code x *= weight * factor}, element by element. */
    void weigh(long x, long weight, int n, float factor) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            lanes.load(weight + at)
                    .mul(factor)
                    .mul(lanes.load(x + at))
                    .intoMemorySegment(Addresses.ALL, x + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 4L * i;
            float weighed = Addresses.getFloat(weight + at) * factor;
            Addresses.setFloat(x + at, weighed * Addresses.getFloat(x + at));
        }
    }

    /** {@code y = x * factor}; y may be x. */
    void scale(long x, long y, int n, float factor) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            lanes.load(x + at).mul(factor).intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 4L * i;
            Addresses.setFloat(y + at, Addresses.getFloat(x + at) * factor);
        }
    }

    /** {@code y = x * r}, times {@code silu(gate)} where {@code gate} is not 0, for one head. */
    void gate(long x, long gate, long y, int n, float r) {
        int step = lanes.count();
        for (int i = 0; i < n; i += step) {
            long at = 4L * i;
            VectorMask<Float> here = lanes.first(Math.min(step, n - i));
            FloatVector value = lanes.load(x + at, here).mul(r);
            if (gate != 0) {
                FloatVector g = lanes.load(gate + at, here);
                value = value.mul(g.div(GateKernels.onePlusExpOfMinus(g)));
            }
            lanes.store(value, y + at, here);
        }
    }

    /**
     * Takes the gradient of {@link #gate} back through the gate alone.
     *
     * @param dx receives {@code dy * silu(gate)}; may be dy
     * @param dGate receives {@code dy * x * r * silu'(gate)}; not read where {@code gate} is 0
     * @return the average of {@code dx * x * r}
     */
    float gateBackward(long dy, long x, long gate, long dx, long dGate, int n, float r) {
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        for (int i = 0; i < n; i += step) {
            long at = 4L * i;
            VectorMask<Float> here = lanes.first(Math.min(step, n - i));
            FloatVector normed = lanes.load(x + at, here).mul(r);
            FloatVector slope = lanes.load(dy + at, here);
            if (gate != 0) {
                FloatVector g = lanes.load(gate + at, here);
                FloatVector s = lanes.broadcast(1f).div(GateKernels.onePlusExpOfMinus(g));
                FloatVector open = g.mul(s);
                lanes.store(
                        GateKernels.slope(s, open).mul(normed).mul(slope), dGate + at, here);
                slope = slope.mul(open);
            }
            lanes.store(slope, dx + at, here);
            sum = slope.fma(normed, sum);
        }
        return lanes.sum(sum) / n;
    }

    /** {@code dx = r * (dx - x * r * average)}: the gradient through the norm. */
    void normBackward(long x, long dx, int n, float r, float average) {
        int step = lanes.count();
        for (int i = 0; i < n; i += step) {
            long at = 4L * i;
            VectorMask<Float> here = lanes.first(Math.min(step, n - i));
            FloatVector along = lanes.load(x + at, here).mul(r).mul(average);
            lanes.store(lanes.load(dx + at, here).sub(along).mul(r), dx + at, here);
        }
    }
}
