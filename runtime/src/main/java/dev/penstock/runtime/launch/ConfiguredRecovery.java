package dev.penstock.runtime.launch;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.runtime.config.run.PipelineSection;
import dev.penstock.runtime.config.run.RecoverySection;
import dev.penstock.runtime.config.run.RunConfig;

/** How a configuration wants deaths to be met. */
final class ConfiguredRecovery {
    private ConfiguredRecovery() {}

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
                });
    }
}
