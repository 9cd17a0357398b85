package dev.penstock.runtime.model.shape;

/**
 * The learning rate of every step: a linear warm-up to the peak, then half a cosine down to the
 * minimum, which it keeps.
 *
 * @param peak reached at the end of the warm-up
 * @param minimum reached at {@code totalSteps}
 * @param warmupSteps steps of the warm-up; step {@code warmupSteps} has the peak
 * @param totalSteps where the cosine ends, counted from the first step
 */
public record LearningRate(double peak, double minimum, long warmupSteps, long totalSteps) {
    public LearningRate {
        if (!(peak >= 0) || !(minimum >= 0) || minimum > peak) {
            throw new IllegalArgumentException(
                    "the learning rate needs 0 <= minimum <= peak, got minimum %s and peak %s"
                            .formatted(minimum, peak));
        }
        if (warmupSteps < 0 || totalSteps < 0) {
            throw new IllegalArgumentException(
                    "the learning rate needs step counts of 0 or more, got a warm-up of %d and %d in total"
                            .formatted(warmupSteps, totalSteps));
        }
    }

    /** Returns the same rate for every step. */
    public static LearningRate constant(double rate) {
        return new LearningRate(rate, rate, 0, 0);
    }

    /**
     * Returns the rate of a step.
     *
     * @param step from 1
     */
    public double at(long step) {
        if (step < warmupSteps) {
            return peak * step / warmupSteps;
        }
        if (step >= totalSteps) {
            return minimum;
        }
        double progress = (double) (step - warmupSteps) / (totalSteps - warmupSteps);
        return minimum + 0.5 * (peak - minimum) * (1 + StrictMath.cos(Math.PI * progress));
    }
}
