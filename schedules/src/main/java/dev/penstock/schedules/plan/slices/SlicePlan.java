package dev.penstock.schedules.plan.slices;

import java.util.List;

/**
 * Token slices of a sequence.
 *
 * @param lengths tokens of each slice, first slice first
 * @param sumNanos time of all slices on one stage
 * @param longestNanos time of the slowest slice
 * @param stages stages of the pipeline, K
 */
public record SlicePlan(List<Integer> lengths, long sumNanos, long longestNanos, int stages) {
    public SlicePlan {
        lengths = List.copyOf(lengths);
    }

    /** The cost of given slices. */
    public static SlicePlan of(List<Integer> lengths, SliceCost cost, int stages) {
        long sum = 0;
        long longest = 0;
        int context = 0;
        for (int length : lengths) {
            long nanos = cost.nanos(length, context);
            sum += nanos;
            longest = Math.max(longest, nanos);
            context += length;
        }
        return new SlicePlan(lengths, sum, longest, stages);
    }

    /** From the first slice's start to the last one's end: sum + (K - 1) longest. */
    public long makespanNanos() {
        return makespanNanos(1);
    }

    /** The same of several micro-batches, one right after the other. */
    public long makespanNanos(int microBatches) {
        return microBatches * sumNanos + (stages - 1) * longestNanos;
    }
}
