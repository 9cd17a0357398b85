package dev.penstock.runtime.model.shape;

import static java.util.Objects.requireNonNull;

/**
 * The learning rate of every step: a linear warm-up to the peak, and then what its schedule says.
 * It depends on nothing but the number of the step, so a resumed or recovered run has the rates of
 * one that was never interrupted.
 *
 * @param schedule how the rate develops after the warm-up
 * @param peak reached at the end of the warm-up
 * @param minimum reached at {@code totalSteps}, and kept from there; a constant rate never comes to
 *     it
 * @param warmupSteps steps of the warm-up; step {@code warmupSteps} has the peak
 * @param decaySteps steps of the decay at the end, of {@link Schedule#WSD} alone; the warm-up comes
 *     first where both do not fit
 * @param totalSteps where the decay ends, counted from the first step
 */
public record LearningRate(
        Schedule schedule,
        double peak,
        double minimum,
        long warmupSteps,
        long decaySteps,
        long totalSteps) {

    /** How a learning rate develops after its warm-up. */
    public enum Schedule {
        /** It keeps the peak. */
        CONSTANT,
        /** It falls in a line to the minimum. */
        LINEAR,
        /** It falls along half a cosine to the minimum. */
        COSINE,
        /**
         * Warm-up, stable, decay (MiniCPM, arXiv 2404.06395): it keeps the peak and falls in the
         * last steps only, so that a run can be continued, or ended early, from any stable step. It
         * falls in a line: with it Haegele et al. (arXiv 2405.18392) come to the loss of a cosine.
         */
        WSD
    }

    public LearningRate {
        requireNonNull(schedule);
        if (!(peak >= 0) || !(minimum >= 0) || minimum > peak) {
            throw new IllegalArgumentException(
                    "the learning rate needs 0 <= minimum <= peak, got minimum %s and peak %s"
                            .formatted(minimum, peak));
        }
        if (warmupSteps < 0 || decaySteps < 0 || totalSteps < 0) {
            throw new IllegalArgumentException(
                    "the learning rate needs step counts of 0 or more, got a warm-up of %d, a decay of %d and %d in total"
                            .formatted(warmupSteps, decaySteps, totalSteps));
        }
    }

    /** Returns the same rate for every step. */
    public static LearningRate constant(double rate) {
        return new LearningRate(Schedule.CONSTANT, rate, rate, 0, 0, 0);
    }

    /**
     * Returns a rate that falls along half a cosine from the end of the warm-up to the last step.
     */
    public static LearningRate cosine(
            double peak, double minimum, long warmupSteps, long totalSteps) {
        return new LearningRate(Schedule.COSINE, peak, minimum, warmupSteps, 0, totalSteps);
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
        return switch (schedule) {
            case CONSTANT -> peak;
            case LINEAR -> onTheLine(step, warmupSteps);
            case COSINE -> onTheCosine(step);
            case WSD -> onTheLine(step, Math.max(warmupSteps, totalSteps - decaySteps));
        };
    }

    private double onTheLine(long step, long start) {
        if (step >= totalSteps) {
            return minimum;
        }
        if (step <= start) {
            return peak;
        }
        return minimum + (peak - minimum) * (totalSteps - step) / (totalSteps - start);
    }

    private double onTheCosine(long step) {
        if (step >= totalSteps) {
            return minimum;
        }
        double progress = (double) (step - warmupSteps) / (totalSteps - warmupSteps);
        return minimum + 0.5 * (peak - minimum) * (1 + StrictMath.cos(Math.PI * progress));
    }
}
