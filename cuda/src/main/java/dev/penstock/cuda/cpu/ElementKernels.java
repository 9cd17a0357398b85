package dev.penstock.cuda.cpu;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/** Sums and checks over runs of n floats. Each method ends with one partial vector, often empty. */
final class ElementKernels {
    private final Lanes lanes;

    ElementKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /** {@code y += x}. */
    void add(long x, long y, int n) {
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            lanes.store(lanes.load(y + at).add(lanes.load(x + at)), y + at);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        lanes.store(lanes.load(y + at, rest).add(lanes.load(x + at, rest)), y + at, rest);
    }

    /** {@code y = a + b}. */
    void sum(long a, long b, long y, int n) {
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            lanes.store(lanes.load(a + at).add(lanes.load(b + at)), y + at);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        lanes.store(lanes.load(a + at, rest).add(lanes.load(b + at, rest)), y + at, rest);
    }

    /** {@code y = (y + a) + b}. */
    void addBoth(long a, long b, long y, int n) {
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            FloatVector sum = lanes.load(y + at).add(lanes.load(a + at));
            lanes.store(sum.add(lanes.load(b + at)), y + at);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector sum = lanes.load(y + at, rest).add(lanes.load(a + at, rest));
        lanes.store(sum.add(lanes.load(b + at, rest)), y + at, rest);
    }

    /** Whether no element is NaN or infinite: zero times such an element is NaN. */
    boolean allFinite(long x, int n) {
        FloatVector zero = lanes.zero();
        FloatVector sum = zero;
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            sum = lanes.load(x + 4L * i).fma(zero, sum);
        }
        sum = lanes.load(x + 4L * whole, lanes.rest(n)).fma(zero, sum);
        return !Float.isNaN(lanes.sum(sum));
    }
}
