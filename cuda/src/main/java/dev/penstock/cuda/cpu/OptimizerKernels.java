package dev.penstock.cuda.cpu;

import static jdk.incubator.vector.VectorOperators.F2D;

import dev.penstock.cuda.device.AdamWStep;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/** What an optimizer step does to runs of n floats: squared norms in double, and AdamW. */
final class OptimizerKernels {
    private final Lanes lanes;

    OptimizerKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /**
     * The sum of squares.
     *
     * @param partial scratch for as many doubles as a vector holds
     */
    double squares(long x, int n, double[] partial) {
        DoubleVector low = DoubleVector.zero(lanes.doubles());
        DoubleVector high = low;
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            FloatVector v = lanes.load(x + 4L * i);
            DoubleVector a = (DoubleVector) v.convertShape(F2D, lanes.doubles(), 0);
            DoubleVector b = (DoubleVector) v.convertShape(F2D, lanes.doubles(), 1);
            low = a.fma(a, low);
            high = b.fma(b, high);
        }
        low.add(high).intoArray(partial, 0);
        double sum = 0;
        for (double value : partial) {
            sum += value;
        }
        for (int i = whole; i < n; i++) {
            double value = Addresses.getFloat(x + 4L * i);
            sum += value * value;
        }
        return sum;
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
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = 4L * i;
            FloatVector gradient = lanes.load(g + at).mul(f.gradient);
            FloatVector first = first(lanes.load(m + at), gradient, f);
            FloatVector second = second(lanes.load(v + at), gradient, f);
            lanes.store(first, m + at);
            lanes.store(second, v + at);
            lanes.store(weight(lanes.load(w + at), first, second, f), w + at);
            lanes.store(zero, g + at);
        }
        long at = 4L * whole;
        VectorMask<Float> rest = lanes.rest(n);
        FloatVector gradient = lanes.load(g + at, rest).mul(f.gradient);
        FloatVector first = first(lanes.load(m + at, rest), gradient, f);
        FloatVector second = second(lanes.load(v + at, rest), gradient, f);
        lanes.store(first, m + at, rest);
        lanes.store(second, v + at, rest);
        lanes.store(weight(lanes.load(w + at, rest), first, second, f), w + at, rest);
        lanes.store(zero, g + at, rest);
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
