package dev.penstock.schedules.plan;

import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** Where no plan fits: the choice that is missing least. */
final class LeastMemory {
    private final PlanRequest request;
    private final SearchSpace space;
    private final List<ScheduleFamily> families;
    private final long choices;

    /**
     * @param choices how many are looked at, at most
     */
    LeastMemory(
            PlanRequest request, SearchSpace space, List<ScheduleFamily> families, long choices) {
        this.request = request;
        this.space = space;
        this.families = families;
        this.choices = choices;
    }

    /** One refusal, or none if there is not even a choice. */
    List<Refusal> find() {
        return Layouts.of(request).stream()
                .sorted(Comparator.comparingInt(Layout::devices).reversed())
                .flatMap(this::splits)
                .limit(choices)
                .flatMap(this::refusals)
                .min(Comparator.comparingLong(refusal -> refusal.memory().excess()))
                .stream()
                .toList();
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

    private Stream<Refusal> refusals(Split split) {
        List<ScheduleFamily> suited = families.stream().filter(split::suits).toList();
        var candidates = SplitCandidates.of(request, split, suited.getFirst());
        return suited.stream()
                .flatMap(
                        family ->
                                space.zeroStages().stream()
                                        .map(zero -> candidates.leastMemory(family, zero))
                                        .flatMap(Optional::stream));
    }
}
