package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;

/**
 * Which steps that were not finite a run bears. Steps are repeatable to the bit, so most that are
 * not finite would be so for ever.
 */
final class NotFiniteSteps {
    private final RecoveryPolicy policy;
    private final Set<Long> wentBackFor = new HashSet<>();

    NotFiniteSteps(RecoveryPolicy policy) {
        this.policy = policy;
    }

    /**
     * Takes one more such step; why not, if it is hopeless.
     *
     * @param lastCommit newest step that was applied
     */
    Optional<String> refuse(long step, String cause, long lastCommit) {
        return switch (policy.nonFinite()) {
            case HALT -> Optional.of(cause);
            case SKIP ->
                    step - lastCommit <= policy.maxRestarts()
                            ? Optional.empty()
                            : Optional.of(
                                    "%s; nothing was applied since step %d, and more than recovery.max-restarts = %d steps in a row are not left out: try a lower learning rate, or an earlier checkpoint"
                                            .formatted(cause, lastCommit, policy.maxRestarts()));
            case ROLLBACK ->
                    wentBackFor.add(step)
                            ? Optional.empty()
                            : Optional.of(
                                    "%s; again, after the run went back to its checkpoint for it: try recovery.non-finite = skip, or a lower learning rate"
                                            .formatted(cause));
        };
    }
}
