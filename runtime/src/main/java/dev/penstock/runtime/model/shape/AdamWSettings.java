package dev.penstock.runtime.model.shape;

/**
 * AdamW with decoupled decay.
 *
 * @param beta1 decay of the first moment
 * @param beta2 decay of the second moment
 * @param epsilon added to the root of the second moment
 * @param weightDecay decay of matrices and tables
 * @param decayAll whether biases and norms decay as well
 * @param state the form in which moments are kept
 */
public record AdamWSettings(
        LearningRate learningRate,
        double beta1,
        double beta2,
        double epsilon,
        double weightDecay,
        boolean decayAll,
        OptimizerState state) {

    /** Moments are kept in F32. */
    public AdamWSettings(
            LearningRate learningRate,
            double beta1,
            double beta2,
            double epsilon,
            double weightDecay,
            boolean decayAll) {
        this(learningRate, beta1, beta2, epsilon, weightDecay, decayAll, OptimizerState.FLOAT32);
    }

    /** Returns the same with moments in another form. */
    public AdamWSettings keeping(OptimizerState other) {
        return new AdamWSettings(learningRate, beta1, beta2, epsilon, weightDecay, decayAll, other);
    }
}
