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
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            FloatVector x = lanes.load(pre + at).add(lanes.load(bias + at));
            lanes.store(x, pre + at);
            lanes.store(value(x), y + at);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector x = lanes.load(pre + at, rest).add(lanes.load(bias + at, rest));
        lanes.store(x, pre + at, rest);
        lanes.store(value(x), y + at, rest);
    }

    /** {@code dy *= gelu'(pre)}. */
    void backward(long pre, long dy, int n) {
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            lanes.store(lanes.load(dy + at).mul(slope(lanes.load(pre + at))), dy + at);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector product = lanes.load(dy + at, rest).mul(slope(lanes.load(pre + at, rest)));
        lanes.store(product, dy + at, rest);
    }

    private static FloatVector value(FloatVector x) {
        FloatVector half = x.mul(0.5f);
        return half.fma(tanhOfInner(x, x.mul(x)), half);
    }

    private static FloatVector slope(FloatVector x) {
        FloatVector square = x.mul(x);
        FloatVector t = tanhOfInner(x, square);
        FloatVector inner = square.fma(3 * CUBIC * SQRT_2_OVER_PI, SQRT_2_OVER_PI);
        FloatVector sech = t.mul(t).sub(1f).neg();
        FloatVector second = x.mul(0.5f).mul(sech).mul(inner);
        return t.fma(0.5f, 0.5f).add(second);
    }

    private static FloatVector tanhOfInner(FloatVector x, FloatVector square) {
        FloatVector cubic = square.mul(x).lanewise(FMA, CUBIC, x);
        return VectorMath.tanh(cubic.mul(SQRT_2_OVER_PI));
    }
}
