package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RunOutcome;
import java.time.Duration;
import java.util.Optional;

/**
 * What is known about a run when it is over.
 *
 * @param wallTime from the start of this process's training to its end
 * @param sample text that the trained model wrote
 */
public record RunEnding(RunOutcome outcome, Duration wallTime, Optional<String> sample) {
    /** {@code completed}, {@code interrupted after step 120} or what went wrong. */
    String told() {
        return switch (outcome) {
            case RunOutcome.Completed _ -> "completed";
            case RunOutcome.Interrupted(long step) -> "interrupted after step " + step;
            case RunOutcome.Failed(long step, String reason) ->
                    "failed after step %d: %s".formatted(step, reason.strip());
        };
    }

    boolean isGood() {
        return outcome instanceof RunOutcome.Completed;
    }
}
