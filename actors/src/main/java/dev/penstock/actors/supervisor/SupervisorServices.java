package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.RunJournal;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.ProcessSupply;

/**
 * What a supervisor works with.
 *
 * @param policy how it meets a death
 * @param journal what it must not forget
 * @param processes who starts processes for it
 */
public record SupervisorServices(
        CheckpointStore checkpoints,
        RecoveryPolicy policy,
        RunJournal journal,
        ProcessSupply processes) {
    /** For a run that ends with its first failure. */
    public static SupervisorServices plain(CheckpointStore checkpoints) {
        return new SupervisorServices(
                checkpoints, RecoveryPolicy.NONE, RunJournal.NONE, ProcessSupply.NONE);
    }
}
