package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.PlanRequest;

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

    /**
     * The best plans of a space.
     *
     * @return without plans if nothing fits; says if it stopped before everything was decided
     */
    public static PlanReport plan(PlanRequest request, SearchSpace space, SearchLimits limits) {
        return new PlanSearch(request, space, limits).run();
    }
}
