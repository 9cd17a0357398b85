package dev.penstock.schedules.plan.slices;

/**
 * One measurement of a slice on a stage.
 *
 * @param length tokens of the slice, at least 1
 * @param context tokens before it
 * @param nanos time on one stage, forward and backward
 */
public record SliceSample(int length, int context, long nanos) {
    public SliceSample {
        if (length < 1 || context < 0 || nanos < 0) {
            throw new IllegalArgumentException(
                    "a sample needs 1 token or more, a context and a time of 0 or more, got %d, %d, %d"
                            .formatted(length, context, nanos));
        }
    }
}
