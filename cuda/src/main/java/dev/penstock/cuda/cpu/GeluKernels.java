package dev.penstock.cuda.cpu;

import static jdk.incubator.vector.VectorOperators.FMA;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/** GELU, tanh form: {@code x/2 (1 + tanh(u))}, {@code u = sqrt(2/pi) (x + 0.044715 x^3)}. */
final class GeluKernels {
    private static final float SQRT_2_OVER_PI = 0.7978845608f;
    private static final float CUBIC = 0.044715f;

    private final Lanes lanes;

    GeluKernels(Lanes lanes) {
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
            value(x).intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            biasGeluRest(pre + 4L * whole, bias + 4L * whole, y + 4L * whole, n - whole);
        }
    }

    private void biasGeluRest(long pre, long bias, long y, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector x = lanes.load(pre, rest).add(lanes.load(bias, rest));
        lanes.store(x, pre, rest);
        lanes.store(value(x), y, rest);
    }

    /** {@code dy *= gelu'(pre)}. */
    void backward(long pre, long dy, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector gradient = lanes.load(dy + at);
            FloatVector result = slope(lanes.load(pre + at)).mul(gradient);
            result.intoMemorySegment(Addresses.ALL, dy + at, Lanes.ORDER);
        }
        if (whole < n) {
            backwardRest(pre + 4L * whole, dy + 4L * whole, n - whole);
        }
    }

    private void backwardRest(long pre, long dy, int n) {
        VectorMask<Float> rest = lanes.first(n);
        lanes.store(lanes.load(dy, rest).mul(slope(lanes.load(pre, rest))), dy, rest);
    }

    private static FloatVector value(FloatVector x) {
        FloatVector half = x.mul(0.5f);
        return half.fma(tanhOfInner(x, x.mul(x)), half);
    }

    private static FloatVector slope(FloatVector x) {
        FloatVector square = x.mul(x);
        FloatVector t = tanhOfInner(x, square);
        FloatVector inner = square.fma(3 * CUBIC * SQRT_2_OVER_PI, SQRT_2_OVER_PI);
        FloatVector halfSlope = t.mul(t).sub(1f).mul(inner).mul(x);
        return t.sub(halfSlope).fma(0.5f, 0.5f);
    }

    private static FloatVector tanhOfInner(FloatVector x, FloatVector square) {
        FloatVector cubic = square.mul(x).lanewise(FMA, CUBIC, x);
        return VectorMath.tanh(cubic.mul(SQRT_2_OVER_PI));
    }
}
