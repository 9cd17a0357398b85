package dev.penstock.cuda.cpu;

import static jdk.incubator.vector.VectorOperators.LT;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.cpu.vector.VectorMath;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/**
 * GELU, exact form: {@code x P(x)}, P the share of the standard normal distribution below x, which
 * is what lies beyond {@code |x|} or 1 less that. Methods that take vectors are called as in {@link
 * GeluKernels}.
 */
final class ExactGeluKernels {
    private static final float INVERSE_ROOT_2_PI = 0.3989422804f;

    private final Lanes lanes;

    ExactGeluKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /** {@code pre += bias; y = gelu(pre)} for a row. */
    void biasGelu(long pre, long bias, long y, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector x = lanes.load(pre + at).add(lanes.load(bias + at));
            x.intoMemorySegment(Addresses.ALL, pre + at, Lanes.ORDER);
            FloatVector e = VectorMath.exp(x.mul(x).mul(-0.5f));
            FloatVector tail = VectorMath.normalTail(x.abs(), e);
            FloatVector below = tail.neg().add(1f).blend(tail, x.compare(LT, 0f));
            below.mul(x).intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            biasGeluRest(pre + 4L * whole, bias + 4L * whole, y + 4L * whole, n - whole);
        }
    }

    private void biasGeluRest(long pre, long bias, long y, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector x = lanes.load(pre, rest).add(lanes.load(bias, rest));
        lanes.store(x, pre, rest);
        FloatVector e = VectorMath.exp(x.mul(x).mul(-0.5f));
        FloatVector tail = VectorMath.normalTail(x.abs(), e);
        FloatVector below = tail.neg().add(1f).blend(tail, x.compare(LT, 0f));
        lanes.store(below.mul(x), y, rest);
    }

    /** {@code dy *= P(pre) + pre * density(pre)}. */
    void backward(long pre, long dy, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector gradient = lanes.load(dy + at);
            FloatVector x = lanes.load(pre + at);
            FloatVector e = VectorMath.exp(x.mul(x).mul(-0.5f));
            FloatVector tail = VectorMath.normalTail(x.abs(), e);
            FloatVector below = tail.neg().add(1f).blend(tail, x.compare(LT, 0f));
            below.add(x.mul(e).mul(INVERSE_ROOT_2_PI))
                    .mul(gradient)
                    .intoMemorySegment(Addresses.ALL, dy + at, Lanes.ORDER);
        }
        if (whole < n) {
            backwardRest(pre + 4L * whole, dy + 4L * whole, n - whole);
        }
    }

    private void backwardRest(long pre, long dy, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector x = lanes.load(pre, rest);
        FloatVector e = VectorMath.exp(x.mul(x).mul(-0.5f));
        FloatVector tail = VectorMath.normalTail(x.abs(), e);
        FloatVector below = tail.neg().add(1f).blend(tail, x.compare(LT, 0f));
        FloatVector slope = below.add(x.mul(e).mul(INVERSE_ROOT_2_PI));
        lanes.store(lanes.load(dy, rest).mul(slope), dy, rest);
    }

    /** GEGLU of a row: {@code z = gelu(a) * b}; z may be b. */
    void geGlu(long a, long b, long z, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector up = lanes.load(b + at);
            FloatVector x = lanes.load(a + at);
            FloatVector e = VectorMath.exp(x.mul(x).mul(-0.5f));
            FloatVector tail = VectorMath.normalTail(x.abs(), e);
            FloatVector below = tail.neg().add(1f).blend(tail, x.compare(LT, 0f));
            below.mul(x).mul(up).intoMemorySegment(Addresses.ALL, z + at, Lanes.ORDER);
        }
        if (whole < n) {
            geGluRest(a + 4L * whole, b + 4L * whole, z + 4L * whole, n - whole);
        }
    }

    private void geGluRest(long a, long b, long z, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector up = lanes.load(b, rest);
        FloatVector x = lanes.load(a, rest);
        FloatVector e = VectorMath.exp(x.mul(x).mul(-0.5f));
        FloatVector tail = VectorMath.normalTail(x.abs(), e);
        FloatVector below = tail.neg().add(1f).blend(tail, x.compare(LT, 0f));
        lanes.store(below.mul(x).mul(up), z, rest);
    }

    /**
     * {@code da = dz * b * gelu'(a); db = dz * gelu(a)}, one after the other: one loop with both
     * would be too large to be compiled without objects for vectors.
     *
     * @param gated address of a; b, da and db lie {@code n} floats behind a and da
     * @param dz overwritten
     * @param dGated address of da, which may be that of a
     */
    void geGluBackward(long gated, long dz, long dGated, int n) {
        long other = 4L * n;
        multiply(gated + other, dz, dGated + other, n);
        backward(gated, dGated + other, n);
        geGlu(gated, dz, dz, n);
        Addresses.copy(dGated + other, dGated, other);
        Addresses.copy(dz, dGated + other, other);
    }

    /** {@code z = x * y}. */
    private void multiply(long x, long y, long z, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            lanes.load(x + at)
                    .mul(lanes.load(y + at))
                    .intoMemorySegment(Addresses.ALL, z + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 4L * i;
            Addresses.setFloat(z + at, Addresses.getFloat(x + at) * Addresses.getFloat(y + at));
        }
    }
}
