package dev.penstock.runtime.model.shape;

/**
 * AdamW with decoupled decay.
 *
 * @param beta1 decay of the first moment
 * @param beta2 decay of the second moment
 * @param epsilon added to the root of the second moment
 * @param weightDecay decay of matrices and tables
 * @param decayAll whether biases and norms decay as well
 */
public record AdamWSettings(
        LearningRate learningRate,
        double beta1,
        double beta2,
        double epsilon,
        double weightDecay,
        boolean decayAll) {}
