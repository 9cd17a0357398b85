package dev.penstock.runtime.launch;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.runtime.config.run.PipelineSection;
import dev.penstock.runtime.config.run.RecoverySection;
import dev.penstock.runtime.config.run.RunConfig;
import java.util.Optional;

/** How a configuration wants deaths to be met. */
public final class ConfiguredRecovery {
    private ConfiguredRecovery() {}

    /** What is said of mirrors that are asked for and help nobody in a run without a cluster. */
    public static Optional<String> mirrorNote(RunConfig config) {
        return replacesDeadProcesses(config) || !config.recovery().mirror()
                ? mirrorNoteOfRanks(config)
                : Optional.of(
                        "recovery.mirror = on protects nothing here: %s; try %s, or recovery.mirror = off, which saves the copies' memory"
                                .formatted(
                                        config.recovery().enabled()
                                                ? "all ranks are in one process, which takes their mirrors with it when it dies"
                                                : "recovery.enabled = off",
                                        config.recovery().enabled()
                                                ? "pipeline.processes = per-stage, or a cluster"
                                                : "recovery.enabled = on"));
    }

    /** The same for a run wherever it is. */
    public static Optional<String> mirrorNoteOfRanks(RunConfig config) {
        return config.recovery().mirror() && config.grid().ranks() == 1
                ? Optional.of(
                        "recovery.mirror = on has no effect: there is one rank, and no other to keep its mirror; try pipeline.stages = 2 or parallel.data = 2")
                : Optional.empty();
    }

    static RecoveryPolicy of(RecoverySection section) {
        return of(section, section.enabled());
    }

    /** Where no part can die alone; what is not finite is met all the same. */
    static RecoveryPolicy inOneProcess(RecoverySection section) {
        return of(section, false);
    }

    /** Whether a dead process's rank may come to live beside another. */
    static boolean replacesDeadProcesses(RunConfig config) {
        return config.recovery().enabled()
                && config.pipeline().processes() == PipelineSection.Processes.PER_STAGE;
    }

    private static RecoveryPolicy of(RecoverySection section, boolean afterDeaths) {
        return new RecoveryPolicy(
                afterDeaths,
                section.maxRestarts(),
                section.window(),
                section.roomPatience(),
                switch (section.nonFinite()) {
                    case HALT -> RecoveryPolicy.NonFinite.HALT;
                    case SKIP -> RecoveryPolicy.NonFinite.SKIP;
                    case ROLLBACK -> RecoveryPolicy.NonFinite.ROLLBACK;
                },
                section.degraded(),
                section.rebalanceAfter());
    }
}
