package dev.penstock.schedules.plan;

/**
 * The arithmetic of PTD-P (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on
 * GPU Clusters Using Megatron-LM", SC21, arXiv 2104.04473). Names as in the paper: l layers, h
 * hidden size, V vocabulary, s sequence, B batch in sequences, b micro-batch in sequences, t
 * tensor-parallel size.
 */
public final class PtdpFormulas {
    private PtdpFormulas() {}

    /** Parameters, equation 2: {@code P = 12 l h^2 (1 + 13/(12h) + (V+s)/(12 l h))}. */
    public static double parameters(int l, int h, int vocabulary, int s) {
        return 12.0 * l * h * h * (1 + 13 / (12.0 * h) + (vocabulary + s) / (12.0 * l * h));
    }

    /**
     * FLOPs of an iteration with everything recomputed, equation 3 (appendix): {@code F = 96 B s l
     * h^2 (1 + s/(6h) + V/(16 l h))}. It counts attention's whole square, not its causal half.
     */
    public static double flopsPerIteration(int batch, int l, int h, int vocabulary, int s) {
        return 96.0 * batch * s * l * h * h * (1 + s / (6.0 * h) + vocabulary / (16.0 * l * h));
    }

    /** Seconds of an iteration of {@code flops} on n devices that reach X FLOP/s each. */
    public static double secondsPerIteration(double flops, int devices, double flopsPerSecond) {
        return flops / (devices * flopsPerSecond);
    }

    /**
     * Days to train on T tokens, equation 4: {@code 8 T P / (n X)} seconds.
     *
     * @param flopsPerSecond X, what one device reaches
     */
    public static double daysToTrain(
            double tokens, double parameters, int devices, double flopsPerSecond) {
        return 8 * tokens * parameters / (devices * flopsPerSecond) / 86_400;
    }

    /**
     * Numbers that a micro-batch takes over a pipeline hop, each way (section 3.2): {@code b s h}.
     */
    public static long hopTraffic(int b, int s, int h) {
        return (long) b * s * h;
    }

    /**
     * The same over each of the t links between two tensor-parallel stages, each carrying its part,
     * gathered again behind them (section 4.1): {@code b s h / t}.
     */
    public static long scatteredHopTraffic(int b, int s, int h, int t) {
        return Math.ceilDiv(hopTraffic(b, s, h), (long) t);
    }

    /**
     * Numbers that tensor parallelism moves per device, layer and micro-batch, two all-reduces each
     * way (section 3.2): {@code 8 b s h (t-1)/t}.
     */
    public static double tensorParallelTraffic(int b, int s, int h, int t) {
        return 8.0 * b * s * h * (t - 1) / t;
    }

    /** Share of idle time of a pipeline, over useful time (section 2.2): {@code (p-1)/(v m)}. */
    public static double bubble(int p, int v, int m) {
        return (p - 1) / ((double) v * m);
    }
}
