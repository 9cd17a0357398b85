package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.PlanChoice;
import java.util.Comparator;

/** An order of choices that decides between equals in the same way every time. */
final class ChoiceOrder {
    static final Comparator<PlanChoice> SIMPLER_FIRST =
            Comparator.comparingInt((PlanChoice c) -> c.layout().devices())
                    .thenComparingInt(c -> c.zero().number())
                    .thenComparingInt(PlanChoice::chunks)
                    .thenComparingInt(PlanChoice::slices)
                    .thenComparing(choice -> !choice.equalSlices())
                    .thenComparing(PlanChoice::recompute)
                    .thenComparingInt(c -> c.layout().pipeline())
                    .thenComparingInt(c -> c.layout().tensor())
                    .thenComparing(c -> c.layout().isUneven())
                    .thenComparing(c -> c.layout().shards().toString())
                    .thenComparingInt(PlanChoice::microBatches)
                    .thenComparing(PlanChoice::kind);

    private ChoiceOrder() {}
}
