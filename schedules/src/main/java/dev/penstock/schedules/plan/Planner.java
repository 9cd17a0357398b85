package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.LayoutHardware;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Searches stages x tensor x data x ZeRO stage x schedule x chunks x micro-batches x slices x
 * recompute for the fastest step of a model on a cluster, with an uneven partition of the layers,
 * under the memory of every device.
 *
 * <p>Choices are opened in the order of their bounds: FLOPs and all-reduces of a layout, the
 * slowest stage of a split, fill and drain of the pipeline around the busiest rank, and the memory
 * that every order of a kind holds at least. Only what is left is generated, measured, lowered with
 * all that a run of it adds (recomputes, gathers, reductions, transfers), proved by the judge under
 * the devices' memory and simulated; a plan that the judge refuses is never offered. Nothing is
 * random and nobody looks at a clock: the same request gives the same plans.
 *
 * <pre>
 * layouts --bound--> splits --bound--> candidates --prove, simulate--> plans
 * P x T x D          M, S, V,          kind, ZeRO,
 *                    recompute         partition
 * </pre>
 */
public final class Planner {
    private Planner() {}

    /** The best plans of the whole space within an interactive time. */
    public static PlanReport plan(PlanRequest request, int plans) {
        return plan(request, SearchSpace.everything(), SearchLimits.interactive(plans));
    }

    /** The same, listed in another order. */
    public static PlanReport plan(PlanRequest request, int plans, Ranking ranking) {
        return plan(request, SearchSpace.everything(), SearchLimits.interactive(plans), ranking);
    }

    /**
     * The best plans of a space, the fastest first.
     *
     * @return without plans if nothing fits; says if it stopped before everything was decided
     */
    public static PlanReport plan(PlanRequest request, SearchSpace space, SearchLimits limits) {
        return plan(request, space, limits, Ranking.BY_TIME);
    }

    /** The same, listed in another order. */
    public static PlanReport plan(
            PlanRequest request, SearchSpace space, SearchLimits limits, Ranking ranking) {
        return new PlanSearch(request, space, limits, ranking).run();
    }

    /**
     * What one choice would make of it, on the partition of layers that is fastest: the same time
     * that it has as a plan of a search.
     *
     * @return empty if it does not fit, or there is no such order
     */
    public static Optional<Plan> predict(PlanRequest request, PlanChoice choice) {
        Optional<ScheduleFamily> family =
                ScheduleFamily.all(List.of(choice.kind()), List.of(choice.chunks())).stream()
                        .findFirst();
        if (family.isEmpty()) {
            return Optional.empty();
        }
        var split =
                new Split(
                        LayoutHardware.of(request.cluster(), choice.layout()),
                        choice.microBatches(),
                        request.batch() / choice.layout().data() / choice.microBatches(),
                        choice.sliceLengths(),
                        choice.chunks(),
                        family.get().vShaped(),
                        choice.recompute());
        List<Candidate> candidates = new ArrayList<>();
        SplitCandidates.of(request, split, family.get())
                .each(family.get(), List.of(choice.zero()), candidates::add, _ -> {});
        return candidates.stream()
                .map(new Prover()::prove)
                .flatMap(
                        verdict ->
                                verdict instanceof Prover.Verdict.Proved(Plan plan)
                                        ? Stream.of(plan)
                                        : Stream.empty())
                .findFirst();
    }
}
