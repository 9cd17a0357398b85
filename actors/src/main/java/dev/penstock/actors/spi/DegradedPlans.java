package dev.penstock.actors.spi;

import java.util.Optional;
import java.util.Set;

/**
 * Makes plans of a run in which ranks are absent: others that hold the same stages do their work.
 * To make and to prove an order takes time; any thread that may wait for that.
 */
public interface DegradedPlans {
    /** Of a run that needs all of its ranks. */
    DegradedPlans NONE = (_, _) -> Optional.empty();

    /**
     * Returns a plan whose stages can stay in memory and which differs from another one only in who
     * does what; empty if there is none, as when nobody else holds a stage.
     *
     * @param now the revision that the run follows; the plan returned is the one after it
     * @param absent ranks that are to be absent, beside those that no plan of the run has. Where
     *     these are those of the plan now and others, only the work of the others changes hands
     */
    Optional<RunPlan> without(PlanRevision now, Set<Integer> absent);
}
