package dev.penstock.cuda.cpu.vector;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/** What retention does with rows between its products. */
public final class RetentionKernels {
    private final Lanes lanes;

    public RetentionKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /** {@code x *= weight * factor}, element by element. */
    public void weigh(long x, long weight, int n, float factor) {
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
    public void scale(long x, long y, int n, float factor) {
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

    /** {@code y *= silu(gate)} for a row. */
    public void open(long gate, long y, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector g = lanes.load(gate + at);
            FloatVector e = VectorMath.exp(g.neg());
            g.div(e.add(1f))
                    .mul(lanes.load(y + at))
                    .intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            openRest(gate + 4L * whole, y + 4L * whole, n - whole);
        }
    }

    private void openRest(long gate, long y, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector g = lanes.load(gate, rest);
        FloatVector e = VectorMath.exp(g.neg());
        lanes.store(g.div(e.add(1f)).mul(lanes.load(y, rest)), y, rest);
    }

    /**
     * {@code dGate = dy * x * r * silu'(gate); dx = dy * silu(gate)} for one head.
     *
     * @param dx may be dy
     */
    public void openBackward(long dy, long x, long gate, long dx, long dGate, int n, float r) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector g = lanes.load(gate + at);
            FloatVector e = VectorMath.exp(g.neg());
            FloatVector s = lanes.broadcast(1f).div(e.add(1f));
            FloatVector value = g.mul(s);
            FloatVector slope = value.sub(value.mul(s)).add(s);
            FloatVector up = lanes.load(dy + at);
            slope.mul(lanes.load(x + at).mul(r))
                    .mul(up)
                    .intoMemorySegment(Addresses.ALL, dGate + at, Lanes.ORDER);
            value.mul(up).intoMemorySegment(Addresses.ALL, dx + at, Lanes.ORDER);
        }
        if (whole < n) {
            long at = 4L * whole;
            openBackwardRest(dy + at, x + at, gate + at, dx + at, dGate + at, n - whole, r);
        }
    }

    private void openBackwardRest(long dy, long x, long gate, long dx, long dGate, int n, float r) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector g = lanes.load(gate, rest);
        FloatVector e = VectorMath.exp(g.neg());
        FloatVector s = lanes.broadcast(1f).div(e.add(1f));
        FloatVector value = g.mul(s);
        FloatVector slope = value.sub(value.mul(s)).add(s);
        FloatVector up = lanes.load(dy, rest);
        lanes.store(slope.mul(lanes.load(x, rest).mul(r)).mul(up), dGate, rest);
        lanes.store(value.mul(up), dx, rest);
    }

    /** Returns the average of {@code dx * x * r} of one head. */
    public float average(long dx, long x, int n, float r) {
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            sum = lanes.load(dx + at).fma(lanes.load(x + at), sum);
        }
        float total = lanes.sum(sum);
        for (int i = whole; i < n; i++) {
            total += Addresses.getFloat(dx + 4L * i) * Addresses.getFloat(x + 4L * i);
        }
        return total * r / n;
    }

    /** {@code dx = r * (dx - x * r * average)} for one head: the gradient through the norm. */
    public void normBackward(long x, long dx, int n, float r, float average) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector along = lanes.load(x + at).mul(r).mul(average);
            lanes.load(dx + at)
                    .sub(along)
                    .mul(r)
                    .intoMemorySegment(Addresses.ALL, dx + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 4L * i;
            float along = Addresses.getFloat(x + at) * r * average;
            Addresses.setFloat(dx + at, (Addresses.getFloat(dx + at) - along) * r);
        }
    }
}
