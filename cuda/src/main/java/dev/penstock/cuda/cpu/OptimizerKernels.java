package dev.penstock.cuda.cpu;

import static jdk.incubator.vector.VectorOperators.F2D;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Dynamic8Kernels;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.kernels.Dynamic8;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/** What an optimizer step does to runs of n floats: squared norms in double, and AdamW. */
final class OptimizerKernels {
    private final Lanes lanes;
    private final Dynamic8Kernels firsts;
    private final Dynamic8Kernels seconds;

    OptimizerKernels(Lanes lanes) {
        this.lanes = lanes;
        firsts = new Dynamic8Kernels(lanes, Dynamic8.SIGNED);
        seconds = new Dynamic8Kernels(lanes, Dynamic8.POSITIVE);
    }

    /** Sums that {@link #squares} leaves per run. */
    int partialSums() {
        return lanes.doubles().length();
    }

    /**
     * Puts partial sums of squares into {@code sums[at]} to {@code sums[at + partialSums() - 1]}.
     */
    void squares(long x, int n, double[] sums, int at) {
        DoubleVector low = DoubleVector.zero(lanes.doubles());
        DoubleVector high = DoubleVector.zero(lanes.doubles());
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            FloatVector v = lanes.load(x + 4L * i);
            DoubleVector a = (DoubleVector) v.convertShape(F2D, lanes.doubles(), 0);
            DoubleVector b = (DoubleVector) v.convertShape(F2D, lanes.doubles(), 1);
            low = a.fma(a, low);
            high = b.fma(b, high);
        }
        low.add(high).intoArray(sums, at);
        for (int i = whole; i < n; i++) {
            double value = Addresses.getFloat(x + 4L * i);
            sums[at] += value * value;
        }
    }

    /** The factors of an update in F32, computed once per tensor. */
    record Factors(
            float gradient,
            float keep,
            float beta1,
            float oneMinusBeta1,
            float beta2,
            float oneMinusBeta2,
            float rate,
            float inverseRoot,
            float epsilon) {

        static Factors of(AdamWStep step) {
            double bias1 = 1 - StrictMath.pow(step.beta1(), step.t());
            double bias2 = 1 - StrictMath.pow(step.beta2(), step.t());
            return new Factors(
                    (float) step.gradientScale(),
                    (float) (1 - step.learningRate() * step.decay()),
                    (float) step.beta1(),
                    (float) (1 - step.beta1()),
                    (float) step.beta2(),
                    (float) (1 - step.beta2()),
                    (float) (step.learningRate() / bias1),
                    (float) (1 / Math.sqrt(bias2)),
                    (float) step.epsilon());
        }
    }

    /** One update of n weights; the gradient is zeroed. */
    void adamW(long w, long g, long m, long v, int n, Factors f) {
        FloatVector zero = lanes.zero();
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector gradient = lanes.load(g + at).mul(f.gradient);
            FloatVector first = first(lanes.load(m + at), gradient, f);
            FloatVector second = second(lanes.load(v + at), gradient, f);
            FloatVector weight = weight(lanes.load(w + at), first, second, f);
            first.intoMemorySegment(Addresses.ALL, m + at, Lanes.ORDER);
            second.intoMemorySegment(Addresses.ALL, v + at, Lanes.ORDER);
            weight.intoMemorySegment(Addresses.ALL, w + at, Lanes.ORDER);
            zero.intoMemorySegment(Addresses.ALL, g + at, Lanes.ORDER);
        }
        if (whole < n) {
            long at = 4L * whole;
            adamWRest(w + at, g + at, m + at, v + at, n - whole, f);
        }
    }

    /**
     * One update of up to a block of weights whose moments are coded.
     *
     * @param m codes and, behind a whole block, their scale
     * @param v likewise
     * @param room for two blocks of floats
     */
    void adamWOfBlock(long w, long g, long m, long v, int n, Factors f, long room) {
        long squares = room + Float.BYTES * Dynamic8.BLOCK;
        long scaleOfM = m + Dynamic8.BLOCK;
        long scaleOfV = v + Dynamic8.BLOCK;
        firsts.widen(m, Addresses.getFloat(scaleOfM), room, n);
        seconds.widen(v, Addresses.getFloat(scaleOfV), squares, n);
        adamW(w, g, room, squares, n, f);
        Addresses.setFloat(scaleOfM, firsts.narrow(room, m, n));
        Addresses.setFloat(scaleOfV, seconds.narrow(squares, v, n));
    }

    private void adamWRest(long w, long g, long m, long v, int n, Factors f) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector gradient = lanes.load(g, rest).mul(f.gradient);
        FloatVector first = first(lanes.load(m, rest), gradient, f);
        FloatVector second = second(lanes.load(v, rest), gradient, f);
        lanes.store(first, m, rest);
        lanes.store(second, v, rest);
        lanes.store(weight(lanes.load(w, rest), first, second, f), w, rest);
        lanes.store(lanes.zero(), g, rest);
    }

    private static FloatVector first(FloatVector m, FloatVector gradient, Factors f) {
        return m.mul(f.beta1).add(gradient.mul(f.oneMinusBeta1));
    }

    private static FloatVector second(FloatVector v, FloatVector gradient, Factors f) {
        return v.mul(f.beta2).add(gradient.mul(gradient).mul(f.oneMinusBeta2));
    }

    private static FloatVector weight(FloatVector w, FloatVector m, FloatVector v, Factors f) {
        FloatVector root = v.sqrt().mul(f.inverseRoot).add(f.epsilon);
        return w.mul(f.keep).sub(m.div(root).mul(f.rate));
    }
}
