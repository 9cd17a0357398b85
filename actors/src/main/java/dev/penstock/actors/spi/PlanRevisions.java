package dev.penstock.actors.spi;

/** Derives what a process works with from a revision of its run's plan. Any thread. */
public interface PlanRevisions {
    /** Of a run whose plan never changes. */
    PlanRevisions NEVER =
            revision -> {
                throw new IllegalStateException(
                        "the plan of this run does not change, but got " + revision);
            };

    /**
     * Returns plan and stages; those of {@link PlanRevision#NONE} too.
     *
     * @throws RuntimeException if another plan comes of the settings here
     */
    Revised of(PlanRevision revision);

    /** What depends on a plan. */
    record Revised(RunPlan plan, StageProgramFactory programs) {}
}
