package dev.penstock.actors.spi;

/**
 * How many tokens the steps of a run train on: all as many, but the last of an epoch, which may
 * have fewer.
 *
 * @param full of any other step
 * @param stepsOfEpoch steps until the data begins again or ends, at least 1
 * @param last of the last step of an epoch
 */
public record StepTokens(long full, long stepsOfEpoch, long last) {
    public StepTokens {
        if (full < 1 || stepsOfEpoch < 1 || last < 1) {
            throw new IllegalArgumentException(
                    "expected epochs of at least 1 step and steps of at least 1 token, got %d steps of %d tokens, the last of %d"
                            .formatted(stepsOfEpoch, full, last));
        }
    }

    /** All steps have as many. */
    public static StepTokens always(long tokens) {
        return new StepTokens(tokens, 1, tokens);
    }

    /**
     * Returns the tokens of a step.
     *
     * @param step from 1
     */
    public long of(long step) {
        return step % stepsOfEpoch == 0 ? last : full;
    }
}
