package dev.penstock.runtime.chaos;

import dev.penstock.actors.spi.RunOutcome;
import java.util.List;

/**
 * The verdict on whether the faults changed anything.
 *
 * @param seed that the faults were drawn from
 * @param steps of each training
 * @param stepsDoneAgain steps that were committed again after a recovery
 * @param faults outcome of each fault
 * @param ending why a training did not finish; empty if both did
 * @param interrupted whether that was the user's wish
 * @param lossDifferences violations of the first invariant
 * @param applicationFaults violations of the second invariant
 * @param command that repeats the run
 */
public record ChaosVerdict(
        long seed,
        long steps,
        long stepsDoneAgain,
        List<FaultRow> faults,
        String ending,
        boolean interrupted,
        List<String> lossDifferences,
        List<String> applicationFaults,
        String command) {
    public ChaosVerdict {
        faults = List.copyOf(faults);
        lossDifferences = List.copyOf(lossDifferences);
        applicationFaults = List.copyOf(applicationFaults);
    }

    /** Returns whether both trainings finished and neither invariant was violated. */
    public boolean holds() {
        return ending.isEmpty() && lossDifferences.isEmpty() && applicationFaults.isEmpty();
    }

    static ChaosVerdict of(
            ChaosRun run, AppliedOnce applied, HarmedTraining truth, HarmedTraining tried) {
        boolean complete = tried.outcome() instanceof RunOutcome.Completed;
        return new ChaosVerdict(
                run.seed(),
                applied.steps(),
                tried.losses().again(),
                tried.faults(),
                complete ? "" : "with faults: " + said(tried.outcome()),
                tried.outcome() instanceof RunOutcome.Interrupted,
                complete ? truth.losses().differences(tried.losses()) : List.of(),
                complete ? applied.violations(truth.books(), tried.books()) : List.of(),
                run.command());
    }

    static ChaosVerdict withoutReference(ChaosRun run, HarmedTraining truth) {
        return new ChaosVerdict(
                run.seed(),
                truth.losses().steps(),
                0,
                List.of(),
                "without faults: " + said(truth.outcome()),
                truth.outcome() instanceof RunOutcome.Interrupted,
                List.of(),
                List.of(),
                run.command());
    }

    private static String said(RunOutcome outcome) {
        return switch (outcome) {
            case RunOutcome.Completed(long step) -> "completed after step " + step;
            case RunOutcome.Interrupted(long step) -> "interrupted after step " + step;
            case RunOutcome.Failed(long step, String reason) ->
                    "failed after step %d: %s".formatted(step, reason);
        };
    }
}
