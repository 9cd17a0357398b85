package dev.penstock.cuda.cpu;

import static jdk.incubator.vector.VectorOperators.FMA;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.cpu.vector.VectorMath;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/**
 * GELU, tanh form: {@code x/2 (1 + tanh(u))}, {@code u = sqrt(2/pi) (x + 0.044715 x^3)}; and tanh
 * by itself.
 *
 * <p>Every method that takes vectors is called by a loop itself and calls none of its kind. The
 * compiler inlines by how often a call was seen, which it knows for calls in the loop; of calls one
 * deeper it may have counted nothing yet, would leave them as calls, and each would turn its
 * vectors into objects for the rest of the run.
 */
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
            FloatVector t = VectorMath.tanhOf(VectorMath.exp(twiceInner(x, x.mul(x))));
            value(x, t).intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            biasGeluRest(pre + 4L * whole, bias + 4L * whole, y + 4L * whole, n - whole);
        }
    }

    private void biasGeluRest(long pre, long bias, long y, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector x = lanes.load(pre, rest).add(lanes.load(bias, rest));
        lanes.store(x, pre, rest);
        FloatVector t = VectorMath.tanhOf(VectorMath.exp(twiceInner(x, x.mul(x))));
        lanes.store(value(x, t), y, rest);
    }

    /** {@code dy *= gelu'(pre)}. */
    void backward(long pre, long dy, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector gradient = lanes.load(dy + at);
            FloatVector x = lanes.load(pre + at);
            FloatVector square = x.mul(x);
            FloatVector t = VectorMath.tanhOf(VectorMath.exp(twiceInner(x, square)));
            FloatVector result = slope(x, square, t).mul(gradient);
            result.intoMemorySegment(Addresses.ALL, dy + at, Lanes.ORDER);
        }
        if (whole < n) {
            backwardRest(pre + 4L * whole, dy + 4L * whole, n - whole);
        }
    }

    private void backwardRest(long pre, long dy, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector x = lanes.load(pre, rest);
        FloatVector square = x.mul(x);
        FloatVector t = VectorMath.tanhOf(VectorMath.exp(twiceInner(x, square)));
        lanes.store(lanes.load(dy, rest).mul(slope(x, square, t)), dy, rest);
    }

    /** {@code y = tanh(y + bias)} for a row. */
    void biasTanh(long y, long bias, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector x = lanes.load(y + at).add(lanes.load(bias + at));
            FloatVector t = VectorMath.tanhOf(VectorMath.exp(x.add(x)));
            t.intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        if (whole < n) {
            biasTanhRest(y + 4L * whole, bias + 4L * whole, n - whole);
        }
    }

    private void biasTanhRest(long y, long bias, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector x = lanes.load(y, rest).add(lanes.load(bias, rest));
        lanes.store(VectorMath.tanhOf(VectorMath.exp(x.add(x))), y, rest);
    }

    /** {@code dy *= 1 - y^2}. */
    void tanhBackward(long y, long dy, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector gradient = lanes.load(dy + at);
            FloatVector t = lanes.load(y + at);
            gradient.sub(t.mul(t).mul(gradient))
                    .intoMemorySegment(Addresses.ALL, dy + at, Lanes.ORDER);
        }
        if (whole < n) {
            tanhBackwardRest(y + 4L * whole, dy + 4L * whole, n - whole);
        }
    }

    private void tanhBackwardRest(long y, long dy, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector gradient = lanes.load(dy, rest);
        FloatVector t = lanes.load(y, rest);
        lanes.store(gradient.sub(t.mul(t).mul(gradient)), dy, rest);
    }

    /** {@code 2u}. */
    private static FloatVector twiceInner(FloatVector x, FloatVector square) {
        FloatVector inner = square.mul(x).lanewise(FMA, CUBIC, x).mul(SQRT_2_OVER_PI);
        return inner.add(inner);
    }

    /**
     * @param t {@code tanh(u)}
     */
    private static FloatVector value(FloatVector x, FloatVector t) {
        FloatVector half = x.mul(0.5f);
        return half.fma(t, half);
    }

    /**
     * @param t {@code tanh(u)}
     */
    private static FloatVector slope(FloatVector x, FloatVector square, FloatVector t) {
        FloatVector inner = square.fma(3 * CUBIC * SQRT_2_OVER_PI, SQRT_2_OVER_PI);
        FloatVector halfSlope = t.mul(t).sub(1f).mul(inner).mul(x);
        return t.sub(halfSlope).fma(0.5f, 0.5f);
    }
}
