package dev.penstock.schedules.plan.slices;

import java.util.Comparator;
import java.util.List;

/**
 * A batch cut into batch slices, each with its own token slices.
 *
 * @param parts in the order of running
 * @param stages stages of the pipeline, K
 */
public record BatchSlicePlan(List<Part> parts, int stages) {
    /**
     * A batch slice.
     *
     * @param sequences how many sequences it has, b
     */
    public record Part(int sequences, SlicePlan slices) {}

    public BatchSlicePlan {
        parts = parts.stream().sorted(Comparator.comparingInt(Part::sequences).reversed()).toList();
    }

    /** Sum of all slices' times and (K - 1) times the longest of all. */
    public long makespanNanos() {
        long sum = parts.stream().mapToLong(part -> part.slices().sumNanos()).sum();
        long longest =
                parts.stream().mapToLong(part -> part.slices().longestNanos()).max().orElse(0);
        return sum + (stages - 1) * longest;
    }
}
