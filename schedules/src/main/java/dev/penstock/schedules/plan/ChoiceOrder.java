package dev.penstock.schedules.plan;

import java.util.Comparator;

/** An order of choices that decides between equals in the same way every time. */
final class ChoiceOrder {
    static final Comparator<PlanChoice> SIMPLER_FIRST =
            Comparator.comparingInt((PlanChoice c) -> c.layout().devices())
                    .thenComparing(c -> c.zero().number())
                    .thenComparing(PlanChoice::chunks)
                    .thenComparing(PlanChoice::slices)
                    .thenComparing(PlanChoice::recompute)
                    .thenComparing(c -> c.layout().pipeline())
                    .thenComparing(c -> c.layout().tensor())
                    .thenComparing(PlanChoice::microBatches)
                    .thenComparing(PlanChoice::kind);

    private ChoiceOrder() {}
}
