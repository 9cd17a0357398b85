package dev.penstock.actors.spi;

import java.util.Optional;

/**
 * Asks for another plan while a run goes on: for a step that would take less time, for example. The
 * thread of the run's listener, after every event that the listener was told.
 */
public interface PlanReaction {
    /** Of a run that keeps its plan. */
    PlanReaction NONE = Optional::empty;

    /** What the run is to follow from the next step that begins; the same wish is told once. */
    Optional<RunPlan> wanted();
}
