package dev.penstock.schedules.plan;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Remembers what did not fit. Of each kind of schedule it keeps those that no other is both faster
 * and smaller than.
 */
final class Refusals {
    private static final Comparator<Refusal> BY_EXCESS =
            Comparator.comparingLong((Refusal refusal) -> refusal.memory().excess())
                    .thenComparing(Refusal::choice, ChoiceOrder.SIMPLER_FIRST);

    private final Map<String, List<Refusal>> byKind = new TreeMap<>();

    void add(Refusal refusal) {
        List<Refusal> known =
                byKind.computeIfAbsent(refusal.choice().kind(), _ -> new ArrayList<>());
        if (known.stream().noneMatch(other -> dominates(other, refusal))) {
            known.removeIf(other -> dominates(refusal, other));
            known.add(refusal);
        }
    }

    private static boolean dominates(Refusal a, Refusal b) {
        return a.leastNanos() <= b.leastNanos() && a.memory().excess() <= b.memory().excess();
    }

    /**
     * Of each kind the one that is missing least among those that might be faster than a plan, what
     * is missing least first.
     */
    List<Refusal> fasterThan(long stepNanos) {
        return byKind.values().stream()
                .map(
                        known ->
                                known.stream()
                                        .filter(refusal -> refusal.leastNanos() < stepNanos)
                                        .min(BY_EXCESS))
                .flatMap(Optional::stream)
                .sorted(BY_EXCESS)
                .toList();
    }
}
