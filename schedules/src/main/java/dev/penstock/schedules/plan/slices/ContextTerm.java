package dev.penstock.schedules.plan.slices;

import java.util.List;

/**
 * What the context adds to the cost of a slice: t_ctx(i, j) = a0 + a1 i + a2 j + a3 i j, fitted to
 * measurements (TeraPipe, arXiv 2102.07988, section 3.3); 0 without context.
 *
 * @param a0 nanoseconds
 * @param a1 nanoseconds per token of the slice
 * @param a2 nanoseconds per token of the context
 * @param a3 nanoseconds per pair of them
 * @param error how well it fits
 */
public record ContextTerm(double a0, double a1, double a2, double a3, FitError error) {
    /** Context is free. */
    public static final ContextTerm NONE = new ContextTerm(0, 0, 0, 0, new FitError(0, 0, 0));

    /**
     * Errors of the predicted t(i, j), each relative to the measured one.
     *
     * @param samples measurements with a context
     * @param mean mean of the absolute relative errors
     * @param worst the largest of them
     */
    public record FitError(int samples, double mean, double worst) {}

    /**
     * How long a slice without context takes; what a measurement has beyond it is the context's.
     */
    interface Alone {
        long nanos(int length);
    }

    /**
     * The least-squares fit.
     *
     * @param samples those without context are passed over
     * @throws IllegalArgumentException if the samples do not decide the four coefficients
     */
    static ContextTerm fit(List<SliceSample> samples, Alone alone) {
        List<SliceSample> used = samples.stream().filter(s -> s.context() > 0).toList();
        if (used.size() < 4) {
            throw new IllegalArgumentException(
                    "the context's term has 4 coefficients, got %d samples with a context; try 2 lengths and 2 contexts at least"
                            .formatted(used.size()));
        }
        // in units of the largest length and context, so that the equations are well conditioned
        double i = used.stream().mapToInt(SliceSample::length).max().orElse(1);
        double j = used.stream().mapToInt(SliceSample::context).max().orElse(1);
        var rows = new double[used.size()][];
        var right = new double[used.size()];
        for (int n = 0; n < rows.length; n++) {
            double x = used.get(n).length() / i;
            double y = used.get(n).context() / j;
            rows[n] = new double[] {1, x, y, x * y};
            right[n] = used.get(n).nanos() - alone.nanos(used.get(n).length());
        }
        double[] a = LeastSquares.solve(rows, right);
        var term = new ContextTerm(a[0], a[1] / i, a[2] / j, a[3] / (i * j), NONE.error());
        return new ContextTerm(term.a0, term.a1, term.a2, term.a3, term.errorOf(used, alone));
    }

    private FitError errorOf(List<SliceSample> samples, Alone alone) {
        double sum = 0;
        double worst = 0;
        for (SliceSample sample : samples) {
            double predicted =
                    alone.nanos(sample.length()) + nanos(sample.length(), sample.context());
            double error = Math.abs(predicted - sample.nanos()) / Math.max(1, sample.nanos());
            sum += error;
            worst = Math.max(worst, error);
        }
        return new FitError(samples.size(), sum / samples.size(), worst);
    }

    /** t_ctx(length, context). */
    public double nanos(int length, int context) {
        return context == 0 ? 0 : a0 + a1 * length + a2 * context + a3 * length * context;
    }
}
