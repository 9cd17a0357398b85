package dev.penstock.actors.mirror;

import dev.penstock.actors.spi.RunPlan;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * Who holds whose mirror in an epoch.
 *
 * @param holders entry r is the rank that holds the mirror of rank r, or {@link #NOBODY}
 * @param fills ranks whose mirrors are not there yet or out of step, rising: their whole state
 *     travels once, before the gradients of the epoch's first step
 */
public record MirrorLayout(List<Integer> holders, List<Integer> fills) {
    /** Holds nothing. */
    public static final int NOBODY = -1;

    public MirrorLayout {
        holders = List.copyOf(holders);
        fills = List.copyOf(fills);
        for (int rank = 0; rank < holders.size(); rank++) {
            int holder = holders.get(rank);
            if (holder < NOBODY || holder >= holders.size() || holder == rank) {
                throw new IllegalArgumentException(
                        "mirror of rank %d: expected another of %d ranks or nobody (-1), got %d"
                                .formatted(rank, holders.size(), holder));
            }
        }
    }

    private MirrorLayout(List<Integer> holders) {
        this(holders, List.of());
    }

    /**
     * As a run begins, if the plan has mirrors: none lives in the process of its rank, unless there
     * is but one.
     *
     * @param places entry r names the process of rank r; equal names are one process
     */
    public static MirrorLayout atFirst(RunPlan plan, List<?> places) {
        if (!plan.mirrors()) {
            return none(plan.ranks());
        }
        boolean apart = places.stream().distinct().count() > 1;
        return apart
                ? across(plan, places)
                : ring(plan.ranks()).without(rank -> !plan.copiesOf(rank).isEmpty());
    }

    /**
     * Same as {@link #across(List)}, but for ranks of which another process has a copy anyway: they
     * need no mirror.
     */
    public static MirrorLayout across(RunPlan plan, List<?> places) {
        return across(places)
                .without(
                        rank ->
                                plan.copiesOf(rank).stream()
                                        .anyMatch(
                                                copy ->
                                                        !places.get(copy)
                                                                .equals(places.get(rank))));
    }

    private MirrorLayout without(IntPredicate spared) {
        return new MirrorLayout(
                IntStream.range(0, holders.size())
                        .mapToObj(rank -> spared.test(rank) ? NOBODY : holderOf(rank))
                        .toList());
    }

    /** No mirrors at all. */
    public static MirrorLayout none(int ranks) {
        return new MirrorLayout(Collections.nCopies(ranks, NOBODY));
    }

    /** Every rank's mirror lives with the next rank, the last one's with the first. */
    public static MirrorLayout ring(int ranks) {
        return across(IntStream.range(0, ranks).boxed().toList());
    }

    /**
     * Every rank's mirror lives with the next rank that a death of its own process spares.
     *
     * <pre>
     *   process of rank   a b b c        rank 2's process took over rank 1, say
     *   mirror held by    1 3 3 0
     * </pre>
     *
     * @param places entry r names the process of rank r; equal names are one process
     */
    public static MirrorLayout across(List<?> places) {
        int ranks = places.size();
        List<Integer> holders = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            int holder = NOBODY;
            for (int ahead = 1; ahead < ranks && holder == NOBODY; ahead++) {
                int other = (rank + ahead) % ranks;
                holder = places.get(other).equals(places.get(rank)) ? NOBODY : other;
            }
            holders.add(holder);
        }
        return new MirrorLayout(holders);
    }

    /** The same with these mirrors to be filled, of those that are held at all. */
    public MirrorLayout filling(List<Integer> ranks) {
        return new MirrorLayout(
                holders, ranks.stream().filter(rank -> holderOf(rank) != NOBODY).sorted().toList());
    }

    /** The rank that holds this rank's mirror, or {@link #NOBODY}. */
    public int holderOf(int rank) {
        return holders.get(rank);
    }

    /** The ranks whose mirrors this rank holds, rising. */
    public List<Integer> heldBy(int rank) {
        return IntStream.range(0, holders.size())
                .filter(other -> holders.get(other) == rank)
                .boxed()
                .toList();
    }
}
