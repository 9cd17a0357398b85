package dev.penstock.runtime.launch;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.runtime.config.RecoverySection;

/** How a configuration wants deaths to be met. */
final class ConfiguredRecovery {
    private ConfiguredRecovery() {}

    static RecoveryPolicy of(RecoverySection section) {
        return new RecoveryPolicy(
                section.enabled(),
                section.maxRestarts(),
                section.window(),
                switch (section.nonFinite()) {
                    case HALT -> RecoveryPolicy.NonFinite.HALT;
                    case SKIP -> RecoveryPolicy.NonFinite.SKIP;
                    case ROLLBACK -> RecoveryPolicy.NonFinite.ROLLBACK;
                });
    }
}
