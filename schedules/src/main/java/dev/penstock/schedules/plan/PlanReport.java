package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.PlanRequest;
import java.util.List;
import java.util.Optional;

/**
 * What a search found.
 *
 * @param plans proved plans, in the order that was asked for; empty if none fits
 * @param refusals choices that might be faster than the first plan but do not fit, one of each kind
 *     of schedule, the most promising first; without plans, the choice that comes nearest to
 *     fitting
 * @param bounded choices whose bounds were looked at
 * @param proved choices that were judged and simulated
 * @param leastOpenNanos no choice that was not looked at makes a faster step than this; empty if
 *     none is left that could be among the plans
 */
public record PlanReport(
        PlanRequest request,
        List<Plan> plans,
        List<Refusal> refusals,
        long bounded,
        long proved,
        Optional<Long> leastOpenNanos) {
    public PlanReport {
        plans = List.copyOf(plans);
        refusals = List.copyOf(refusals);
    }

    /** The best plan. */
    public Optional<Plan> winner() {
        return plans.stream().findFirst();
    }
}
