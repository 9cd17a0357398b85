package dev.penstock.actors.fault;

import java.time.Duration;
import java.util.Optional;

/**
 * How a run meets the death of a part of it.
 *
 * @param enabled whether it goes on at all; otherwise every failure ends the run
 * @param maxRestarts the most recoveries within {@code window}; one more ends the run
 * @param roomPatience so long a run waits for room for ranks whose node is gone
 * @param nonFinite what becomes of a step with a NaN or an infinity
 * @param degraded whether it goes on without ranks whose stages others hold, until they are back
 * @param rebalanceAfter so long it waits for room for lost ranks before they go to nodes that have
 *     others; empty: they never do
 */
public record RecoveryPolicy(
        boolean enabled,
        int maxRestarts,
        Duration window,
        Duration roomPatience,
        NonFinite nonFinite,
        boolean degraded,
        Optional<Duration> rebalanceAfter) {
    /** What becomes of a step whose loss or gradients are not finite. Nothing of it is applied. */
    public enum NonFinite {
        /** The run ends. */
        HALT,
        /** The step is left out. */
        SKIP,
        /** The run goes back to its last checkpoint. */
        ROLLBACK
    }

    /** One that needs all ranks. */
    public RecoveryPolicy(
            boolean enabled,
            int maxRestarts,
            Duration window,
            Duration roomPatience,
            NonFinite nonFinite) {
        this(enabled, maxRestarts, window, roomPatience, nonFinite, false, Optional.empty());
    }

    /** The same, whose lost ranks go to nodes that have others after so long a wait for room. */
    public RecoveryPolicy rebalancingAfter(Duration wait) {
        return new RecoveryPolicy(
                enabled, maxRestarts, window, roomPatience, nonFinite, degraded, Optional.of(wait));
    }

    /** Every failure ends the run. */
    public static final RecoveryPolicy NONE =
            new RecoveryPolicy(false, 0, Duration.ZERO, Duration.ZERO, NonFinite.HALT);

    /** Five recoveries in ten minutes, and ten minutes for a node to come back. */
    public static final RecoveryPolicy DEFAULT =
            new RecoveryPolicy(
                    true, 5, Duration.ofMinutes(10), Duration.ofMinutes(10), NonFinite.HALT);
}
