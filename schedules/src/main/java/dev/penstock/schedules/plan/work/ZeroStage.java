package dev.penstock.schedules.plan.work;

/**
 * How much of the training state is divided among the N replicas (ZeRO, Rajbhandari et al. 2020,
 * arXiv 1910.02054, section 5).
 *
 * <p>Bytes per device for P parameters of p, g and o bytes (section 5.4, figure 1; with p = g = 2
 * and o = K = 12 the paper's table):
 *
 * <pre>
 *                   in general                7.5B on 64
 *   plain           (p + g + o) P             120 GB
 *   stage 1         (p + g) P + o P / N       31.4 GB
 *   stage 2         p P + (g + o) P / N       16.6 GB
 *   stage 3         (p + g + o) P / N         1.88 GB
 * </pre>
 *
 * Gathered parameters and gradients on their way are not in it.
 */
public enum ZeroStage {
    /** Plain data parallelism: everything on every replica. */
    NONE,
    /** Stage 1: optimizer states are divided. */
    OPTIMIZER,
    /** Stage 2: gradients too. */
    GRADIENTS,
    /** Stage 3: parameters too, which are gathered for use. */
    PARAMETERS;

    /** 0 to 3, as everybody says. */
    public int number() {
        return switch (this) {
            case NONE -> 0;
            case OPTIMIZER -> 1;
            case GRADIENTS -> 2;
            case PARAMETERS -> 3;
        };
    }

    /** Whether the optimizer's states are divided. */
    public boolean dividesOptimizer() {
        return number() >= 1;
    }

    /** Whether gradients are divided. */
    public boolean dividesGradients() {
        return number() >= 2;
    }

    /** Whether parameters are divided. */
    public boolean dividesParameters() {
        return number() >= 3;
    }

    /**
     * Bytes of training state on the replica that has most of it; where P is no multiple of N,
     * shards are rounded up.
     *
     * @param parameters P, 0 or more
     * @param replicas N, at least 1
     */
    public long bytes(long parameters, TrainingBytes bytes, int replicas) {
        return bytes(parameters, parameters, bytes, replicas);
    }

    /**
     * The same where not all parameters are trained.
     *
     * @param trained how many of them, 0 or more
     */
    public long bytes(long parameters, long trained, TrainingBytes bytes, int replicas) {
        if (parameters < 0 || trained < 0 || replicas < 1) {
            throw new IllegalArgumentException(
                    "expected 0 parameters or more on 1 replica or more, got %d on %d"
                            .formatted(Math.min(parameters, trained), replicas));
        }
        long shard = Math.ceilDiv(parameters, (long) replicas);
        long trainedShard = Math.ceilDiv(trained, (long) replicas);
        return bytes.parameter() * (dividesParameters() ? shard : parameters)
                + bytes.gradient() * (dividesGradients() ? trainedShard : trained)
                + bytes.optimizer() * (dividesOptimizer() ? trainedShard : trained);
    }
}
