package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.spi.RunPlan;

/** Coordinators, on a clock that is the world's as well unless said otherwise. */
public final class TestCoordinators {
    private TestCoordinators() {}

    /** A run that nobody has begun, without nodes. */
    public static RunCoordinator begin(RunPlan plan, RecoveryPolicy policy, long now) {
        return begin(plan, policy, 0, now);
    }

    /**
     * The same.
     *
     * @param worldClockMs what clocks say there when {@code now} is 0
     */
    public static RunCoordinator begin(
            RunPlan plan, RecoveryPolicy policy, long worldClockMs, long now) {
        return RunCoordinator.of(RunBeginning.FIRST, plan, policy, worldClockMs, now);
    }

    /** A run whose supervisor is gone. */
    public static RunCoordinator takeUp(
            JournalledRun run, RunPlan plan, RecoveryPolicy policy, long now) {
        return takeUp(run, plan, policy, 0, now);
    }

    /**
     * The same.
     *
     * @param worldClockMs what clocks say there when {@code now} is 0
     */
    public static RunCoordinator takeUp(
            JournalledRun run, RunPlan plan, RecoveryPolicy policy, long worldClockMs, long now) {
        var taken = new RunBeginning.TakenUp(run, false);
        return RunCoordinator.of(taken, plan, policy, worldClockMs, now);
    }

    /** The same in a cluster, whose nodes have been asked which ranks they kept. */
    public static RunCoordinator takeUpNamed(
            JournalledRun run, RunPlan plan, RecoveryPolicy policy, long now) {
        return RunCoordinator.of(new RunBeginning.TakenUp(run, true), plan, policy, 0, now);
    }
}
