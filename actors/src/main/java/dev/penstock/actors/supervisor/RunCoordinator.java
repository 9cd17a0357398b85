package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.shard.RankEvent;
import dev.penstock.actors.shard.RankOrder;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides what happens in a run. A plain object: it is told what happened and when, and answers
 * with what is to be done; it knows neither actors, clocks nor files, so that the same decisions
 * can be driven by real processes or by a simulation. Not thread-safe.
 *
 * <pre>
 *   PLACING --all ranks open--> RUNNING --last step, stop or failure--> STOPPING --all stopped--> outcome
 * </pre>
 *
 * Every {@code now} is in nanoseconds on one clock that never goes back.
 */
public final class RunCoordinator {
    private enum Phase {
        PLACING,
        RUNNING,
        STOPPING
    }

    private static final Logger LOG = LoggerFactory.getLogger(RunCoordinator.class);

    private final RunPlan plan;
    private final RankTable ranks;
    private final Outbox out;
    private final Placer placer;
    private final StallWatch stalls;
    private final StepDriver driver;
    private final long startedNanos;

    private Phase phase = Phase.PLACING;
    private @Nullable String failure;
    private long stoppingSinceNanos;
    private long lastTickNanos;

    /** A run that has no nodes yet. */
    public RunCoordinator(RunPlan plan, long now) {
        this.plan = plan;
        this.ranks = new RankTable(plan.ranks());
        this.out = new Outbox(ranks);
        this.placer = new Placer(plan.ranks());
        this.stalls = new StallWatch(plan);
        this.driver = new StepDriver(plan, ranks, out, stalls);
        this.startedNanos = now;
        this.lastTickNanos = now;
    }

    // ---- placing --------------------------------------------------------------------------------

    /** A node said who it is; saying it again changes nothing. */
    public List<Effect> onNode(NodeInfo node, long now) {
        if (phase == Phase.PLACING) {
            for (int rank : placer.place(node)) {
                ranks.placed(rank, node, now);
                out.add(new Effect.HostRank(node, rank, ranks.epoch()));
            }
        }
        return out.drain();
    }

    /** A node hosts the rank, which is opening. */
    public List<Effect> onHosted(int rank, long now) {
        ranks.hosted(rank, now);
        if (phase == Phase.STOPPING) {
            out.tell(rank, new RankOrder.Stop(ranks.epoch()));
        }
        startWhenAllOpen(now);
        return out.drain();
    }

    /** A node does not take the rank. */
    public List<Effect> onHostRefused(int rank, String reason, long now) {
        ranks.stopped(rank);
        fail(reason, now);
        finishIfStopped();
        return out.drain();
    }

    private void startWhenAllOpen(long now) {
        if (phase == Phase.PLACING && ranks.allOpen()) {
            Optional<String> mixed = ranks.mixedFingerprints();
            if (mixed.isPresent()) {
                fail(mixed.get(), now);
                return;
            }
            phase = Phase.RUNNING;
            LOG.info("run {}: {} ranks open", plan.runId(), plan.ranks());
            List<String> devices = ranks.devices();
            String fingerprint = ranks.fingerprint();
            out.notify(listener -> listener.onOpened(devices, fingerprint));
            follow(driver.proceed(now), now);
        }
    }

    // ---- running --------------------------------------------------------------------------------

    /** A rank spoke. */
    public List<Effect> onRankEvent(RankEvent event, long now) {
        ranks.heardFrom(event.rank(), now);
        switch (event) {
            case RankEvent.Opened opened -> {
                ranks.opened(opened);
                startWhenAllOpen(now);
            }
            case RankEvent.Lease lease -> ranks.activity(lease.rank(), lease.activity());
            case RankEvent.Failed(_, String reason) -> fail(reason, now);
            case RankEvent.Stopped(int rank) -> onStopped(rank, now);
            case RankEvent.PassDone _,
                    RankEvent.StepDone _,
                    RankEvent.Saved _,
                    RankEvent.SaveFailed _ -> {
                if (phase == Phase.RUNNING) {
                    follow(answer(event, now), now);
                }
            }
        }
        return out.drain();
    }

    private Turn answer(RankEvent event, long now) {
        return switch (event) {
            case RankEvent.PassDone done -> driver.onPassDone(done, now);
            case RankEvent.StepDone done -> driver.onStepDone(done, now);
            case RankEvent.Saved saved -> driver.onSaved(saved, now);
            case RankEvent.SaveFailed failed -> driver.onSaveFailed(failed, now);
            case RankEvent.Opened _, RankEvent.Lease _, RankEvent.Failed _, RankEvent.Stopped _ ->
                    Turn.GO_ON;
        };
    }

    private void follow(Turn turn, long now) {
        switch (turn) {
            case Turn.GoOn _ -> {}
            case Turn.Finished _ -> stop(now);
            case Turn.Broken(String reason) -> fail(reason, now);
        }
    }

    /** A checkpoint was published, or could not be. */
    public List<Effect> onPublished(Publication publication, long now) {
        boolean idle = driver.onPublished(publication);
        if (idle && phase == Phase.RUNNING) {
            follow(driver.proceed(now), now);
        }
        return out.drain();
    }

    // ---- the end --------------------------------------------------------------------------------

    /** The user wants the run to finish its step, save, and end. */
    public List<Effect> onInterrupt(long now) {
        driver.interrupt();
        if (phase == Phase.PLACING) {
            stop(now);
        }
        return out.drain();
    }

    /** Proof that a rank's process is gone. */
    public List<Effect> onRankDied(int rank, String how, long now) {
        ranks.died(rank);
        if (phase == Phase.STOPPING) {
            onStopped(rank, now);
        } else {
            fail(
                    "%s died: %s, after step %d"
                            .formatted(ranks.name(rank), how, driver.completed()),
                    now);
        }
        return out.drain();
    }

    /** Proof that the media driver is gone, and with it every link. */
    public List<Effect> onLinkDied(String how, long now) {
        fail("the media driver died: " + how, now);
        return out.drain();
    }

    private void fail(String reason, long now) {
        if (failure == null && phase != Phase.STOPPING) {
            failure = reason;
            LOG.error("run {} failed: {}", plan.runId(), reason);
        }
        stop(now);
    }

    private void stop(long now) {
        if (phase == Phase.STOPPING) {
            return;
        }
        phase = Phase.STOPPING;
        stoppingSinceNanos = now;
        out.tellAll(new RankOrder.Stop(ranks.epoch()));
        finishIfStopped();
    }

    private void onStopped(int rank, long now) {
        ranks.stopped(rank);
        if (phase != Phase.STOPPING) {
            fail("%s stopped by itself".formatted(ranks.name(rank)), now);
        }
        finishIfStopped();
    }

    private void finishIfStopped() {
        if (phase == Phase.STOPPING && ranks.allStopped()) {
            out.add(new Effect.Finish(outcome()));
        }
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

    // ---- deadlines ------------------------------------------------------------------------------

    /** Time passed; to be told several times a lease. */
    public List<Effect> onTick(long now) {
        boolean slept = now - lastTickNanos > plan.timeouts().lease().dividedBy(2).toNanos();
        lastTickNanos = now;
        if (slept) {
            ranks.renewLeases(now); // this process was suspended: renewals may be in the mailbox
        }
        switch (phase) {
            case PLACING -> {
                if (now - startedNanos > plan.timeouts().start().toNanos()) {
                    fail(
                            "the ranks did not open within %d s: %s"
                                    .formatted(
                                            plan.timeouts().start().toSeconds(), ranks.missing()),
                            now);
                }
            }
            case RUNNING -> watch(now);
            case STOPPING -> {
                if (now - stoppingSinceNanos > plan.timeouts().stop().toNanos()) {
                    LOG.warn("run {}: not stopped in time: {}", plan.runId(), ranks.missing());
                    out.add(new Effect.Finish(outcome()));
                }
            }
        }
        return out.drain();
    }

    private void watch(long now) {
        Optional<String> silent = ranks.silent(now, plan.timeouts().lease());
        if (silent.isPresent()) {
            fail(silent.get(), now);
            return;
        }
        List<RankTable.Row> rows = ranks.rows();
        boolean waiting = driver.waitsForRanks();
        stalls.report(rows, waiting, now)
                .ifPresent(text -> out.notify(listener -> listener.onStall(text)));
        stalls.hopeless(rows, waiting).ifPresent(reason -> fail(reason, now));
    }
}
