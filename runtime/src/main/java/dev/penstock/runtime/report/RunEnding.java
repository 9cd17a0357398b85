package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.metrics.Quantities;
import java.time.Duration;
import java.util.Optional;

/**
 * What is known about a run when its report is made.
 *
 * @param told {@code completed}, {@code interrupted after step 120} or what went wrong
 * @param isGood whether it did all of its steps
 * @param sinceStep after which its last process began: of a run that was resumed or taken over
 * @param wallTime from the start of its last process's training to its end
 * @param sample text that the trained model wrote
 */
public record RunEnding(
        String told, boolean isGood, long sinceStep, Duration wallTime, Optional<String> sample) {
    /** The same ending, if the newest checkpoint is not the last step's. */
    RunEnding withoutLastCheckpoint() {
        return new RunEnding(told + ", NOT SAVED", isGood, sinceStep, wallTime, sample);
    }

    /** The same ending of a run whose last process began after this step. */
    public RunEnding since(long step) {
        return new RunEnding(told, isGood, step, wallTime, sample);
    }

    /** How long its last process was at it: {@code 3:05}, or {@code 0:09 since step 60}. */
    String took() {
        return Quantities.clock(wallTime) + (sinceStep == 0 ? "" : " since step " + sinceStep);
    }

    /** Of a run whose process says how it ended. */
    public static RunEnding of(RunOutcome outcome, Duration wallTime, Optional<String> sample) {
        return new RunEnding(
                told(outcome), outcome instanceof RunOutcome.Completed, 0, wallTime, sample);
    }

    private static String told(RunOutcome outcome) {
        return switch (outcome) {
            case RunOutcome.Completed _ -> "completed";
            case RunOutcome.Interrupted(long step) -> "interrupted after step " + step;
            case RunOutcome.Failed(long step, String reason) ->
                    "failed after step %d: %s".formatted(step, reason.strip());
        };
    }
}
