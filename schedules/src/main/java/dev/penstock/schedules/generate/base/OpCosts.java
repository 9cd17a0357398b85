package dev.penstock.schedules.generate.base;

/**
 * What the ops of one rank cost, for orders that are searched.
 *
 * @param forwardNanos of one stage (chunk), micro-batch and slice
 * @param backwardInputNanos of the same
 * @param backwardWeightNanos of the same
 * @param communicationNanos how long a tensor is under way from this rank to another
 */
public record OpCosts(
        long forwardNanos,
        long backwardInputNanos,
        long backwardWeightNanos,
        long communicationNanos) {
    public OpCosts {
        if (forwardNanos < 0
                || backwardInputNanos < 0
                || backwardWeightNanos < 0
                || communicationNanos < 0) {
            throw new IllegalArgumentException(
                    "costs must be 0 or more, got forward %d, backward input %d, weight %d, communication %d"
                            .formatted(
                                    forwardNanos,
                                    backwardInputNanos,
                                    backwardWeightNanos,
                                    communicationNanos));
        }
    }

    /** Every op takes 1, a tensor is there at once. */
    public static OpCosts unit() {
        return new OpCosts(1, 1, 1, 0);
    }
}
