package dev.penstock.cuda.cpu;

import static jdk.incubator.vector.VectorOperators.MAX;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.cpu.vector.VectorMath;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/**
 * Softmax over a row of {@code n} floats, and its gradient. Rows of attention lie in scratch and
 * are padded to whole vectors by {@link #pad}; rows of logits end where they end, which is left to
 * the ...Rest methods.
 */
final class SoftmaxKernels {
    private static final float LOWEST = -Float.MAX_VALUE;

    private static final MethodHandle EXP = handle("expInlined");

    private final Lanes lanes;

    /**
     * {@link #expInlined}, never inlined: the compiler sees through a handle only where it is a
     * constant, and a field of an object is none. A caller may have used up the compiler's budget
     * for inlining (18,000 nodes in C2) when it comes to the exponential, and whatever of it was
     * not inlined then would turn vectors into objects, for every row.
     */
    private final MethodHandle exp;

    SoftmaxKernels(Lanes lanes) {
        this.lanes = lanes;
        this.exp = EXP.bindTo(this);
    }

    private static MethodHandle handle(String kernel) {
        try {
            return MethodHandles.lookup()
                    .findVirtual(
                            SoftmaxKernels.class,
                            kernel,
                            MethodType.methodType(
                                    float.class, long.class, int.class, float.class, float.class));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** {@code n} rounded down to whole vectors. */
    int whole(int n) {
        return lanes.whole(n);
    }

    /** {@code n} rounded up to whole vectors. */
    int padded(int n) {
        return lanes.whole(n + lanes.count() - 1);
    }

    /**
     * Fills the last vector of a row with numbers below all others.
     *
     * @return {@code n} rounded up to whole vectors
     */
    int pad(long row, int n) {
        int padded = padded(n);
        for (int i = n; i < padded; i++) {
            Addresses.setFloat(row + 4L * i, LOWEST);
        }
        return padded;
    }

    /** Overwrites the first elements of a row with numbers below all others. */
    void hide(long row, int n) {
        for (int i = 0; i < n; i++) {
            Addresses.setFloat(row + 4L * i, LOWEST);
        }
    }

    /** The largest of whole vectors. */
    float max(long row, int whole) {
        FloatVector max = lanes.broadcast(LOWEST);
        int step = lanes.count();
        for (int i = 0; i < whole; i += step) {
            max = max.max(lanes.load(row + 4L * i));
        }
        return max.reduceLanes(MAX);
    }

    float maxOfRest(long row, int n) {
        float max = LOWEST;
        for (int i = 0; i < n; i++) {
            max = Math.max(max, Addresses.getFloat(row + 4L * i));
        }
        return max;
    }

    /** {@code row = exp(row * scale - shift)} for whole vectors; returns the sum. */
    float exp(long row, int whole, float scale, float shift) {
        try {
            return (float) exp.invokeExact(row, whole, scale, shift);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a kernel declares no exception", e);
        }
    }

    @SuppressWarnings("unused") // found by its name, see above
    private float expInlined(long row, int whole, float scale, float shift) {
        FloatVector minus = lanes.broadcast(-shift);
        FloatVector factor = lanes.broadcast(scale);
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        for (int i = 0; i < whole; i += step) {
            FloatVector e = VectorMath.exp(lanes.load(row + 4L * i).fma(factor, minus));
            e.intoMemorySegment(Addresses.ALL, row + 4L * i, Lanes.ORDER);
            sum = sum.add(e);
        }
        return lanes.sum(sum);
    }

    /** The sum that {@link #exp} returns, leaving the row alone. */
    float sumOfExp(long row, int whole, float scale, float shift) {
        FloatVector minus = lanes.broadcast(-shift);
        FloatVector factor = lanes.broadcast(scale);
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        for (int i = 0; i < whole; i += step) {
            sum = sum.add(VectorMath.exp(lanes.load(row + 4L * i).fma(factor, minus)));
        }
        return lanes.sum(sum);
    }

    /** {@link #exp} for fewer elements than a vector: a store with a mask would make objects. */
    float expOfRest(long row, int n, float scale, float shift) {
        for (int i = 0; i < n; i++) {
            float shifted = Addresses.getFloat(row + 4L * i) * scale - shift;
            Addresses.setFloat(row + 4L * i, VectorMath.exp(shifted));
        }
        return lanes.sum(lanes.load(row, lanes.first(n)));
    }

    /** {@link #sumOfExp} for fewer elements than a vector. */
    float sumOfExpOfRest(long row, int n, float scale, float shift) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector shifted = lanes.load(row, rest).mul(scale).sub(shift);
        return lanes.sum(lanes.zero().blend(VectorMath.exp(shifted), rest));
    }

    /** {@code row *= factor}. */
    void scale(long row, int n, float factor) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            lanes.load(row + 4L * i)
                    .mul(factor)
                    .intoMemorySegment(Addresses.ALL, row + 4L * i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            Addresses.setFloat(row + 4L * i, Addresses.getFloat(row + 4L * i) * factor);
        }
    }

    /** {@code dp = p * (dp - delta) * scale} for whole vectors. */
    void backward(long p, long dp, int whole, float delta, float scale) {
        int step = lanes.count();
        for (int i = 0; i < whole; i += step) {
            FloatVector difference = lanes.load(dp + 4L * i).sub(delta);
            lanes.load(p + 4L * i)
                    .mul(difference)
                    .mul(scale)
                    .intoMemorySegment(Addresses.ALL, dp + 4L * i, Lanes.ORDER);
        }
    }

    float dot(long a, long b, int n) {
        FloatVector sum = lanes.zero();
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            sum = lanes.load(a + 4L * i).fma(lanes.load(b + 4L * i), sum);
        }
        float total = lanes.sum(sum);
        for (int i = whole; i < n; i++) {
            float product = Addresses.getFloat(a + 4L * i) * Addresses.getFloat(b + 4L * i);
            total += product;
        }
        return total;
    }
}
