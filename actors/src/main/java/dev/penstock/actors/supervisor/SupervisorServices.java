package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.RunJournal;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.DegradedPlans;
import dev.penstock.actors.spi.PlanReaction;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.ProcessVitals;

/**
 * What a supervisor works with.
 *
 * @param policy how it meets a death
 * @param journal what it must not forget
 * @param processes who starts processes for it
 * @param vitals who sees whether processes live
 * @param reaction who may want another plan
 * @param degraded who makes plans without ranks that are lost
 */
public record SupervisorServices(
        CheckpointStore checkpoints,
        RecoveryPolicy policy,
        RunJournal journal,
        ProcessSupply processes,
        ProcessVitals vitals,
        PlanReaction reaction,
        DegradedPlans degraded) {
    /** For a run that needs all of its ranks. */
    public SupervisorServices(
            CheckpointStore checkpoints,
            RecoveryPolicy policy,
            RunJournal journal,
            ProcessSupply processes,
            ProcessVitals vitals,
            PlanReaction reaction) {
        this(checkpoints, policy, journal, processes, vitals, reaction, DegradedPlans.NONE);
    }

    /** For a run that ends with its first failure. */
    public static SupervisorServices plain(CheckpointStore checkpoints) {
        return new SupervisorServices(
                checkpoints,
                RecoveryPolicy.NONE,
                RunJournal.NONE,
                ProcessSupply.NONE,
                ProcessVitals.NONE,
                PlanReaction.NONE);
    }
}
