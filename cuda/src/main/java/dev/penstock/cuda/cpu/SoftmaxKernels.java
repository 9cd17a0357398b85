package dev.penstock.cuda.cpu;

import static jdk.incubator.vector.VectorOperators.MAX;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/** Softmax over a row of {@code n} floats, and its gradient. */
final class SoftmaxKernels {
    private static final float LOWEST = -Float.MAX_VALUE;

    private final Lanes lanes;

    SoftmaxKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    float max(long row, int n) {
        FloatVector lowest = lanes.broadcast(LOWEST);
        FloatVector max = lowest;
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            max = max.max(lanes.load(row + 4L * i));
        }
        VectorMask<Float> rest = lanes.rest(n);
        max = max.max(lowest.blend(lanes.load(row + 4L * whole, rest), rest));
        return max.reduceLanes(MAX);
    }

    /** {@code row = exp(row * scale - shift)}; returns the sum. */
    float exp(long row, int n, float scale, float shift) {
        FloatVector minus = lanes.broadcast(-shift);
        FloatVector factor = lanes.broadcast(scale);
        FloatVector sum = lanes.zero();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            FloatVector e = VectorMath.exp(lanes.load(row + 4L * i).fma(factor, minus));
            lanes.store(e, row + 4L * i);
            sum = sum.add(e);
        }
        long at = row + 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector e = VectorMath.exp(lanes.load(at, rest).fma(factor, minus));
        lanes.store(e, at, rest);
        return lanes.sum(sum.add(e, rest));
    }

    /** The sum that {@link #exp} returns, leaving the row alone. */
    float sumOfExp(long row, int n, float scale, float shift) {
        FloatVector minus = lanes.broadcast(-shift);
        FloatVector factor = lanes.broadcast(scale);
        FloatVector sum = lanes.zero();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            sum = sum.add(VectorMath.exp(lanes.load(row + 4L * i).fma(factor, minus)));
        }
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector e = VectorMath.exp(lanes.load(row + 4L * whole, rest).fma(factor, minus));
        return lanes.sum(sum.add(e, rest));
    }

    /** {@code row *= factor}. */
    void scale(long row, int n, float factor) {
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            lanes.store(lanes.load(row + 4L * i).mul(factor), row + 4L * i);
        }
        VectorMask<Float> rest = lanes.rest(n);
        long at = row + 4L * whole;
        lanes.store(lanes.load(at, rest).mul(factor), at, rest);
    }

    /** {@code dp = p * (dp - delta) * scale}. */
    void backward(long p, long dp, int n, float delta, float scale) {
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            FloatVector difference = lanes.load(dp + 4L * i).sub(delta);
            lanes.store(lanes.load(p + 4L * i).mul(difference).mul(scale), dp + 4L * i);
        }
        VectorMask<Float> rest = lanes.rest(n);
        long at = 4L * whole;
        FloatVector difference = lanes.load(dp + at, rest).sub(delta);
        FloatVector result = lanes.load(p + at, rest).mul(difference).mul(scale);
        lanes.store(result, dp + at, rest);
    }

    float dot(long a, long b, int n) {
        FloatVector sum = lanes.zero();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            sum = lanes.load(a + 4L * i).fma(lanes.load(b + 4L * i), sum);
        }
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector a0 = lanes.load(a + 4L * whole, rest);
        return lanes.sum(a0.fma(lanes.load(b + 4L * whole, rest), sum));
    }
}
