package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.LayoutHardware;
import dev.penstock.schedules.plan.work.Layouts;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.stream.Stream;

/** Where no plan fits: the choice that is missing least. */
final class LeastMemory {
    /** Layouts with most devices come first; they divide most. */
    private static final int MOST_SPLITS = 20_000;

    private final PlanRequest request;
    private final SearchSpace space;
    private final List<ScheduleFamily> families;

    LeastMemory(PlanRequest request, SearchSpace space, List<ScheduleFamily> families) {
        this.request = request;
        this.space = space;
        this.families = families;
    }

    /** A choice whose order is not yet measured. */
    private record Bounded(
            SplitCandidates split, ScheduleFamily family, ZeroStage zero, long excess) {}

    /** One refusal, or none if there is not even a choice. */
    List<Refusal> find() {
        var open = new PriorityQueue<>(Comparator.comparingLong(Bounded::excess));
        Layouts.of(request).stream()
                .sorted(Comparator.comparingInt(Layout::devices).reversed())
                .flatMap(this::splits)
                .limit(MOST_SPLITS)
                .flatMap(this::bounded)
                .forEach(open::add);
        Optional<Refusal> least = Optional.empty();
        while (!open.isEmpty() && mayBeLess(open.element(), least)) {
            Bounded next = open.remove();
            Optional<Refusal> found = next.split().measured(next.family(), next.zero());
            least =
                    Stream.of(least, found)
                            .flatMap(Optional::stream)
                            .min(Comparator.comparingLong(refusal -> refusal.memory().excess()));
        }
        return least.stream().toList();
    }

    private static boolean mayBeLess(Bounded next, Optional<Refusal> least) {
        return least.isEmpty() || next.excess() < least.get().memory().excess();
    }

    /** The smallest micro-batches: larger ones hold more. */
    private Stream<Split> splits(Layout layout) {
        var hardware = LayoutHardware.of(request.cluster(), layout);
        int sequences = request.batch() / layout.data();
        return space.slices().stream()
                .filter(slices -> slices <= request.model().sequence())
                .flatMap(
                        slices ->
                                Stream.of(1, sequences)
                                        .distinct()
                                        .flatMap(
                                                each ->
                                                        splits(
                                                                hardware,
                                                                sequences / each,
                                                                each,
                                                                slices)))
                .filter(split -> !split.isTooLarge())
                .filter(split -> families.stream().anyMatch(split::suits));
    }

    private Stream<Split> splits(
            LayoutHardware hardware, int microBatches, int sequences, int slices) {
        List<Integer> lengths = Layouts.equalSlices(request.model().sequence(), slices);
        int ranks = hardware.layout().pipeline();
        return space.chunks().stream()
                .filter(chunks -> ranks * chunks <= request.model().layers() + 2)
                .flatMap(
                        chunks ->
                                space.recompute().stream()
                                        .flatMap(
                                                recompute ->
                                                        Stream.of(false, true)
                                                                .map(
                                                                        v ->
                                                                                new Split(
                                                                                        hardware,
                                                                                        microBatches,
                                                                                        sequences,
                                                                                        lengths,
                                                                                        chunks,
                                                                                        v,
                                                                                        recompute))));
    }

    private Stream<Bounded> bounded(Split split) {
        List<ScheduleFamily> suited = families.stream().filter(split::suits).toList();
        var candidates = SplitCandidates.of(request, split, suited.getFirst());
        return suited.stream()
                .flatMap(
                        family ->
                                space.zeroStages().stream()
                                        .map(zero -> bounded(candidates, family, zero)));
    }

    private static Bounded bounded(
            SplitCandidates candidates, ScheduleFamily family, ZeroStage zero) {
        long excess = candidates.leastMemory(family, zero).excess();
        return new Bounded(candidates, family, zero, excess);
    }
}
