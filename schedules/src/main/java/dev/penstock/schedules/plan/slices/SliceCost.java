package dev.penstock.schedules.plan.slices;

/** What a token slice costs a stage, forward and backward together: TeraPipe's t(i, j). */
@FunctionalInterface
public interface SliceCost {
    /**
     * Nanoseconds on one stage, its transfers included; 0 or more.
     *
     * @param length tokens of the slice, i
     * @param context tokens of the same sequence before it, j
     */
    long nanos(int length, int context);
}
