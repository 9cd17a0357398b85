package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.device.DropoutMask;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/**
 * Sums and checks over runs of n floats.
 *
 * <p>Here as in all kernels: the loop takes whole vectors, and what is left goes to a method of its
 * own. So the compiler sees small methods (it gives up on large ones, and then every vector becomes
 * an object), and never sees a vector that depends on a condition.
 */
final class ElementKernels {
    private final Lanes lanes;

    ElementKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /** {@code y += x}. */
    void add(long x, long y, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            lanes.load(y + at)
                    .add(lanes.load(x + at))
                    .intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            sumRest(x + 4L * whole, y + 4L * whole, y + 4L * whole, n - whole);
        }
    }

    /** {@code y -= x}. */
    void subtract(long x, long y, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            lanes.load(y + at)
                    .sub(lanes.load(x + at))
                    .intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            VectorMask<Float> rest = lanes.first(n - whole);
            long at = 4L * whole;
            lanes.store(lanes.load(y + at, rest).sub(lanes.load(x + at, rest)), y + at, rest);
        }
    }

    /** {@code y = a x + b y}. */
    void blend(float a, long x, float b, long y, int n) {
        FloatVector factor = lanes.broadcast(a);
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            lanes.load(x + at)
                    .fma(factor, lanes.load(y + at).mul(b))
                    .intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            VectorMask<Float> rest = lanes.first(n - whole);
            long at = 4L * whole;
            FloatVector old = lanes.load(y + at, rest).mul(b);
            lanes.store(lanes.load(x + at, rest).fma(factor, old), y + at, rest);
        }
    }

    private void sumRest(long a, long b, long y, int n) {
        VectorMask<Float> rest = lanes.first(n);
        lanes.store(lanes.load(a, rest).add(lanes.load(b, rest)), y, rest);
    }

    /** {@code y = (y + a) + b}. */
    void addBoth(long a, long b, long y, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector sum = lanes.load(y + at).add(lanes.load(a + at));
            sum.add(lanes.load(b + at)).intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            addBothRest(a + 4L * whole, b + 4L * whole, y + 4L * whole, n - whole);
        }
    }

    private void addBothRest(long a, long b, long y, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector sum = lanes.load(y, rest).add(lanes.load(a, rest));
        lanes.store(sum.add(lanes.load(b, rest)), y, rest);
    }

    /**
     * {@code y = kept ? x * scale : 0}, or added to y. By elements: each needs two products of
     * 64-bit integers, for which AVX2 has no instruction.
     *
     * @param key of the row, two words
     */
    void dropout(long x, long key, DropoutMask mask, long y, int n, boolean accumulate) {
        long low = Addresses.getInt(key) & 0xFFFF_FFFFL;
        long rowKey = low | (long) Addresses.getInt(key + 4) << 32;
        float scale = mask.scale();
        for (int j = 0; j < n; j++) {
            float value = mask.keeps(rowKey, j) ? Addresses.getFloat(x + 4L * j) * scale : 0;
            float before = accumulate ? Addresses.getFloat(y + 4L * j) : 0;
            Addresses.setFloat(y + 4L * j, accumulate ? before + value : value);
        }
    }

    /** Whether no element is NaN or infinite: zero times such an element is NaN. */
    boolean allFinite(long x, int n) {
        FloatVector zero = lanes.zero();
        FloatVector sum = zero;
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            sum = lanes.load(x + 4L * i).fma(zero, sum);
        }
        boolean finite = !Float.isNaN(lanes.sum(sum));
        for (int i = whole; i < n; i++) {
            finite &= Float.isFinite(Addresses.getFloat(x + 4L * i));
        }
        return finite;
    }
}
