package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.Timeouts;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Which phase a run is in, what leads from one to the next, and how it ends. */
final class RunCourse {
    /** See {@link RunCoordinator}. */
    enum Phase {
        PLACING,
        RUNNING,
        RECOVERING,
        STOPPING
    }

    private static final Logger LOG = LoggerFactory.getLogger(RunCourse.class);

    private final RunPlan plan;
    private final RecoveryPolicy policy;
    private final RankTable ranks;
    private final Outbox out;
    private final StepDriver driver;
    private final RecoveryDriver recovery;
    private final RecoveryCauses causes;

    private Phase phase = Phase.PLACING;
    private @Nullable String failure;
    private long stoppingSinceNanos;

    RunCourse(
            RunPlan plan,
            RecoveryPolicy policy,
            RankTable ranks,
            Outbox out,
            StepDriver driver,
            RecoveryDriver recovery,
            RecoveryCauses causes) {
        this.plan = plan;
        this.policy = policy;
        this.ranks = ranks;
        this.out = out;
        this.driver = driver;
        this.recovery = recovery;
        this.causes = causes;
    }

    Phase phase() {
        return phase;
    }

    boolean is(Phase asked) {
        return phase == asked;
    }

    /** Another supervisor had the run. */
    void takeUp(RunBeginning.TakenUp run, long now) {
        causes.takeUp(run, now);
        phase = Phase.RECOVERING;
    }

    /** The run begins when no rank is missing. */
    void startWhenAllOpen(long now) {
        if (phase == Phase.PLACING && ranks.allOpen()) {
            Optional<String> mixed = ranks.mixedFingerprints();
            if (mixed.isPresent()) {
                fail(mixed.get(), now);
                return;
            }
            phase = Phase.RUNNING;
            LOG.info("run {}: every rank is open, {} in all", plan.runId(), plan.ranks());
            List<String> devices = ranks.devices();
            String fingerprint = ranks.fingerprint();
            List<Integer> homes = ranks.homes();
            out.notify(listener -> listener.onPlaced(homes));
            out.notify(listener -> listener.onOpened(devices, fingerprint));
            follow(driver.proceed(now), now);
        }
    }

    /** What comes of an event of the run. */
    void follow(NextAction turn, long now) {
        if (phase == Phase.PLACING && recovery.isUnderWay()) {
            phase = Phase.RECOVERING;
        }
        if (phase == Phase.RUNNING || phase == Phase.RECOVERING) {
            phase = recovery.isUnderWay() ? Phase.RECOVERING : Phase.RUNNING;
        }
        switch (turn) {
            case NextAction.GoOn _ -> {}
            case NextAction.Finished _ -> stop(now);
            case NextAction.Broken(String reason) -> fail(reason, now);
            case NextAction.Stalled(String reason) -> follow(causes.onStalled(reason, now), now);
            case NextAction.Superseded(int epoch) -> giveWay(epoch);
            case NextAction.NotFinite(long step, String reason) -> onNotFinite(step, reason, now);
            case NextAction.Move(Set<Integer> moving) -> follow(causes.onMove(moving, now), now);
            case NextAction.Revise(RunPlan revised) -> follow(causes.onRevise(revised, now), now);
        }
    }

    private void onNotFinite(long step, String reason, long now) {
        if (policy.nonFinite() == RecoveryPolicy.NonFinite.HALT || driver.evaluates()) {
            fail(reason, now);
        } else {
            follow(causes.onNotFinite(step, reason, policy.nonFinite(), now), now);
        }
    }

    // ---- the end --------------------------------------------------------------------------------

    /** The run cannot go on: it ends. */
    void fail(String reason, long now) {
        if (failure == null && phase != Phase.STOPPING) {
            failure = reason;
            out.add(new Effect.Journal(new JournalRecord.Failed(driver.completed(), reason)));
            LOG.error("run {} failed: {}", plan.runId(), reason);
        }
        stop(now);
    }

    /** Ranks and files are another's; nothing is written or told any more. */
    private void giveWay(int epoch) {
        String reason =
                "another supervisor has taken the run up, in epoch %d; this one ends"
                        .formatted(epoch);
        LOG.error("run {}: {}", plan.runId(), reason);
        phase = Phase.STOPPING;
        out.add(new Effect.Finish(new RunOutcome.Failed(driver.completed(), reason)));
    }

    /**
     * The ranks are to stop in the middle of a recovery, at the user's wish. What they had done
     * since the newest checkpoint is lost, and the listener is told so.
     */
    void stopUnsaved(long now) {
        driver.unsavedSteps()
                .ifPresent(
                        reason -> {
                            long step = driver.lastCommit();
                            out.notify(listener -> listener.onCheckpointFailed(step, reason));
                        });
        stop(now);
    }

    /** The ranks are to stop. */
    void stop(long now) {
        if (phase == Phase.STOPPING) {
            return;
        }
        phase = Phase.STOPPING;
        stoppingSinceNanos = now;
        out.tellAll(new RankCommand.Stop(ranks.epoch()));
        finishIfStopped();
    }

    void finishIfStopped() {
        if (phase == Phase.STOPPING && ranks.allStopped()) {
            finish();
        }
    }

    private void finish() {
        if (failure == null) { // else that is written already
            out.add(new Effect.Journal(new JournalRecord.Ended(driver.completed())));
        }
        out.add(new Effect.Finish(outcome()));
    }

    private RunOutcome outcome() {
        long completed = driver.completed();
        if (failure != null) {
            return new RunOutcome.Failed(completed, failure);
        }
        return driver.interrupted() && completed < plan.steps().last()
                ? new RunOutcome.Interrupted(completed)
                : new RunOutcome.Completed(completed);
    }

    /** Ranks that do not stop are not waited for for ever, and those that were silent hardly. */
    void endIfTooLate(long now) {
        Timeouts timeouts = plan.timeouts();
        Duration limit = ranks.onlySilentOnesLeft() ? timeouts.lease() : timeouts.stop();
        if (now - stoppingSinceNanos > limit.toNanos()) {
            LOG.warn("run {}: not stopped in time: {}", plan.runId(), ranks.notStopped());
            finish();
        }
    }
}
