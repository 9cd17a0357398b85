package dev.penstock.schedules.plan;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * What a planner tries. Pipeline, tensor and data sizes and micro-batches are all that divide.
 *
 * @param kinds of schedule
 * @param chunks stages per rank
 * @param slices token slices of a sequence, of equal tokens and of equal FLOPs
 * @param recompute whether to keep activations, compute them again, or try both
 */
public record SearchSpace(
        List<String> kinds,
        List<Integer> chunks,
        List<Integer> slices,
        Set<ZeroStage> zeroStages,
        List<Boolean> recompute) {
    public SearchSpace {
        kinds = List.copyOf(kinds);
        chunks = List.copyOf(chunks);
        slices = List.copyOf(slices);
        zeroStages = Set.copyOf(zeroStages);
        recompute = List.copyOf(recompute);
    }

    /** Every kind of schedule that there is. */
    public static SearchSpace everything() {
        return new SearchSpace(
                Generators.kinds(),
                List.of(1, 2, 3, 4, 6, 8),
                List.of(1, 2, 4, 8, 16),
                EnumSet.allOf(ZeroStage.class),
                List.of(false, true));
    }
}
