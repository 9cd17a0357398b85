package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.shard.RankBirth;
import dev.penstock.actors.shard.RankEvent;
import dev.penstock.actors.shard.RankOrder;
import dev.penstock.actors.shard.RankStart;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
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
 *                               RUNNING --death--> RECOVERING --all ranks back--> RUNNING
 * </pre>
 *
 * Every {@code now} is in nanoseconds on one clock that never goes back.
 */
public final class RunCoordinator {
    private enum Phase {
        PLACING,
        RUNNING,
        RECOVERING,
        STOPPING
    }

    private static final Logger LOG = LoggerFactory.getLogger(RunCoordinator.class);

    private final RunPlan plan;
    private final RecoveryPolicy policy;
    private final RankTable ranks;
    private final Outbox out;
    private final Placer placer;
    private final StallWatch stalls;
    private final StepDriver driver;
    private final RecoveryDriver recovery;
    private final long startedNanos;

    private Phase phase = Phase.PLACING;
    private @Nullable String failure;
    private long stoppingSinceNanos;
    private long lastTickNanos;

    /** A run that has no nodes yet. */
    public RunCoordinator(RunPlan plan, RecoveryPolicy policy, long now) {
        this(plan, policy, 1, now);
        begins();
    }

    /** A run as its supervisor comes to it. */
    static RunCoordinator of(
            RunBeginning beginning, RunPlan plan, RecoveryPolicy policy, long now) {
        return switch (beginning) {
            case RunBeginning.New(int epoch) -> {
                var coordinator = new RunCoordinator(plan, policy, epoch, now);
                coordinator.begins();
                yield coordinator;
            }
            case RunBeginning.TakenUp(JournalledRun run) -> resumeFrom(run, plan, policy, now);
        };
    }

    private void begins() {
        out.add(
                new Effect.Journal(
                        new JournalRecord.Began(
                                plan.runId(),
                                plan.hash(),
                                plan.ranks(),
                                ranks.epoch(),
                                driver.completed())));
    }

    /**
     * Takes up a run whose supervisor is gone: in the next epoch, with all ranks that still live,
     * from what the journal says was committed.
     *
     * @param plan which must be the plan that the run began with
     * @throws IllegalArgumentException if it is not, or the run is over
     */
    public static RunCoordinator resumeFrom(
            JournalledRun run, RunPlan plan, RecoveryPolicy policy, long now) {
        var began = run.began();
        if (!began.planHash().equals(plan.hash())
                || began.completed() != plan.steps().completed()
                || run.ending().isPresent()) {
            throw new IllegalArgumentException(
                    "expected a run under way of plan %s from step %d, got %s"
                            .formatted(plan.hash(), plan.steps().completed(), run));
        }
        var coordinator = new RunCoordinator(plan, policy, run.epoch(), now);
        coordinator.driver.takeUp(run);
        coordinator.recovery.takeUp(now);
        coordinator.phase = Phase.RECOVERING;
        return coordinator;
    }

    private RunCoordinator(RunPlan plan, RecoveryPolicy policy, int epoch, long now) {
        this.plan = plan;
        this.policy = policy;
        this.ranks = new RankTable(plan.ranks());
        ranks.enter(epoch);
        this.out = new Outbox(ranks);
        this.placer = new Placer(ranks);
        this.stalls = new StallWatch(plan);
        this.driver = new StepDriver(plan, ranks, out, stalls);
        this.recovery = new RecoveryDriver(plan, policy, ranks, placer, out, driver);
        this.startedNanos = now;
        this.lastTickNanos = now;
    }

    /** The run's epoch. */
    public int epoch() {
        return ranks.epoch();
    }

    // ---- placing --------------------------------------------------------------------------------

    /** A node said who it is, and hosts nothing. */
    public List<Effect> onNode(NodeInfo node, long now) {
        return onNode(node, List.of(), now);
    }

    /**
     * A node said who it is; saying it again changes nothing.
     *
     * @param hosted the ranks that live there
     */
    public List<Effect> onNode(NodeInfo node, List<HostedRank> hosted, long now) {
        placer.add(node);
        follow(recovery.onHostedRanks(node, hosted, now), now);
        if (phase == Phase.PLACING) {
            place(now);
        } else if (phase == Phase.RECOVERING) {
            follow(recovery.onNode(now), now);
        }
        return out.drain();
    }

    /** Each rank as soon as it has a node; where addresses or processes matter, all at once. */
    private void place(long now) {
        Map<Integer, NodeInfo> chosen = new TreeMap<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.hasNode(rank)) {
                int missing = rank;
                placer.nodeFor(rank).ifPresent(node -> chosen.put(missing, node));
            }
        }
        boolean together =
                placer.addressesMatter() || plan.mirrors() || !plan.grid().isPipelineAlone();
        if (together && chosen.size() < ranks.size()) {
            return;
        }
        chosen.forEach((rank, node) -> ranks.placed(rank, node, now));
        chosen.forEach((rank, node) -> out.add(new Effect.HostRank(node, birth(rank))));
    }

    /** No mirror lives in the process of its rank, unless there is but one. */
    private MirrorLayout firstMirrors() {
        if (!plan.mirrors()) {
            return MirrorLayout.none(ranks.size());
        }
        List<String> processes =
                IntStream.range(0, ranks.size())
                        .mapToObj(rank -> ranks.node(rank).orElseThrow().process())
                        .toList();
        boolean apart = processes.stream().distinct().count() > 1;
        return apart ? MirrorLayout.across(processes) : MirrorLayout.of(plan);
    }

    private RankBirth birth(int rank) {
        return new RankBirth(
                rank,
                ranks.epoch(),
                new RankStart.Fresh(),
                firstMirrors(),
                ranks.homes(),
                "",
                ranks.addresses());
    }

    /** Whether this one, of all that there may be of a rank, is the run's. */
    public boolean has(HostedRank hosted, NodeInfo node) {
        return ranks.isTheOne(hosted, node);
    }

    /** Proof that a rank lives nowhere; of use to a supervisor that took the run up. */
    public List<Effect> onNowhere(int rank, long now) {
        if (phase == Phase.RECOVERING) {
            follow(recovery.onNowhere(rank, now), now);
        }
        return out.drain();
    }

    /** A node hosts the rank, which is opening. */
    public List<Effect> onHosted(int rank, int birthEpoch, long now) {
        if (ranks.isPlaced(rank, birthEpoch)) {
            ranks.hosted(rank, now);
            if (phase == Phase.STOPPING) {
                out.tell(rank, new RankOrder.Stop(ranks.epoch()));
            }
            follow(recovery.onHosted(rank, birthEpoch, now), now);
            startWhenAllOpen(now);
        }
        return out.drain();
    }

    /** A node does not take the rank. */
    public List<Effect> onHostRefused(int rank, int birthEpoch, String reason, long now) {
        if (ranks.isPlaced(rank, birthEpoch)) {
            ranks.stopped(rank);
            fail(reason, now);
            finishIfStopped();
        }
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

    /** A rank spoke; one whose place another has got is not listened to. */
    public List<Effect> onRankEvent(RankEvent event, long now) {
        if (!ranks.isAlive(event)) {
            return out.drain();
        }
        int rank = event.rank();
        boolean wasSilent = ranks.isSilent(rank);
        ranks.heardFrom(rank, now);
        recovery.onHeard(rank, wasSilent);
        switch (event) {
            case RankEvent.Lease lease -> ranks.activity(rank, lease.activity(), now);
            case RankEvent.Failed failed -> onFailed(failed, now);
            case RankEvent.Stopped _ -> onStopped(rank, now);
            case RankEvent.Opened opened -> {
                ranks.opened(opened);
                startWhenAllOpen(now);
                ifRecovering(event, () -> recovery.onBack(rank, now), now);
            }
            case RankEvent.Resumed resumed -> {
                ranks.resumed(resumed);
                ifRecovering(event, () -> recovery.onBack(rank, now), now);
            }
            case RankEvent.Prepared prepared ->
                    ifRecovering(event, () -> recovery.onPrepared(prepared, now), now);
            case RankEvent.LinkLost lost -> onLinkLost(lost, now);
            case RankEvent.NonFinite bad ->
                    ifRunning(event, () -> new Turn.NotFinite(bad.step(), bad.reason()), now);
            case RankEvent.PassDone done ->
                    ifRunning(event, () -> driver.onPassDone(done, now), now);
            case RankEvent.StepDone done ->
                    ifRunning(event, () -> driver.onStepDone(done, now), now);
            case RankEvent.Saved saved -> ifRunning(event, () -> driver.onSaved(saved, now), now);
            case RankEvent.SaveFailed failed ->
                    ifRunning(event, () -> driver.onSaveFailed(failed, now), now);
        }
        return out.drain();
    }

    private void ifRunning(RankEvent event, Supplier<Turn> act, long now) {
        if (phase == Phase.RUNNING && event.epoch() == ranks.epoch()) {
            follow(act.get(), now);
        }
    }

    private void ifRecovering(RankEvent event, Supplier<Turn> act, long now) {
        if (phase == Phase.RECOVERING && event.epoch() == ranks.epoch()) {
            follow(act.get(), now);
        }
    }

    private void follow(Turn turn, long now) {
        if (phase == Phase.RUNNING || phase == Phase.RECOVERING) {
            phase = recovery.isUnderWay() ? Phase.RECOVERING : Phase.RUNNING;
        }
        switch (turn) {
            case Turn.GoOn _ -> {}
            case Turn.Finished _ -> stop(now);
            case Turn.Broken(String reason) -> fail(reason, now);
            case Turn.NotFinite(long step, String reason) -> onNotFinite(step, reason, now);
            case Turn.Move(Set<Integer> moving) -> follow(recovery.onMove(moving, now), now);
        }
    }

    /** These ranks are to live on other nodes; no step is lost or done again. */
    public List<Effect> onMove(Set<Integer> moving, long now) {
        if (phase == Phase.RUNNING || phase == Phase.RECOVERING) {
            driver.move(moving);
        }
        return out.drain();
    }

    private void onNotFinite(long step, String reason, long now) {
        if (policy.nonFinite() == RecoveryPolicy.NonFinite.HALT || driver.evaluates()) {
            fail(reason, now);
        } else {
            follow(recovery.onNotFinite(step, reason, policy.nonFinite(), now), now);
        }
    }

    /** A checkpoint was published, or could not be. */
    public List<Effect> onPublished(Publication publication, long now) {
        boolean idle = driver.onPublished(publication);
        if (phase == Phase.RUNNING && idle) {
            follow(driver.proceed(now), now);
        } else if (phase == Phase.RECOVERING) {
            follow(recovery.retry(now), now);
        }
        return out.drain();
    }

    // ---- deaths ---------------------------------------------------------------------------------

    /**
     * Proof that a process of this host is gone, and with it all ranks that lived there.
     *
     * @param startedFor the rank that it was started for, if for one
     * @param how it ended
     */
    public List<Effect> onProcessDied(
            long pid, Optional<Integer> startedFor, String how, long now) {
        Optional<NodeInfo> node = placer.ofProcess(pid);
        node.ifPresent(placer::remove);
        List<Integer> gone = new ArrayList<>(node.map(ranks::on).orElse(List.of()));
        startedFor.filter(rank -> !ranks.hasNode(rank)).ifPresent(gone::add);
        if (gone.isEmpty()) {
            LOG.warn("run {}: a process without a rank is gone: {}", plan.runId(), how);
        } else {
            onDead(gone, how, now);
        }
        return out.drain();
    }

    /**
     * Proof that a process of any host is gone, such as a closed connection.
     *
     * @param process as its node says
     * @param withLink whether the media driver went with it
     */
    public List<Effect> onNodeDied(String process, boolean withLink, String how, long now) {
        List<NodeInfo> nodes = placer.of(process);
        nodes.forEach(placer::remove);
        List<Integer> gone = nodes.stream().flatMap(node -> ranks.on(node).stream()).toList();
        if (gone.isEmpty() && withLink) {
            return onLinkDied(how, now);
        }
        if (!gone.isEmpty()) {
            onDead(gone, withLink, how, now);
        }
        return out.drain();
    }

    /** Ranks that are to be started wait for room: so far it is nobody's fault. */
    public List<Effect> onNoRoom(String line, long now) {
        if (phase == Phase.RECOVERING) {
            follow(recovery.onNoRoom(line, now), now);
        }
        return out.drain();
    }

    private void onDead(List<Integer> gone, String how, long now) {
        onDead(gone, false, how, now);
    }

    private void onDead(List<Integer> gone, boolean withLink, String how, long now) {
        String names = gone.stream().map(ranks::name).collect(Collectors.joining(" and "));
        String cause = "%s died: %s, after step %d".formatted(names, how, driver.completed());
        switch (phase) {
            case PLACING -> {
                gone.forEach(ranks::vacate);
                fail(cause, now);
            }
            case RUNNING, RECOVERING -> {
                if (driver.onlyPublishes()) {
                    gone.forEach(ranks::vacate);
                } else {
                    follow(
                            withLink
                                    ? recovery.onDeadWithLink(gone, cause, now)
                                    : recovery.onDead(gone, cause, now),
                            now);
                }
            }
            case STOPPING -> {
                gone.forEach(ranks::vacate);
                finishIfStopped();
            }
        }
    }

    private void onFailed(RankEvent.Failed failed, long now) {
        boolean hopeless = failed.repeats() || phase == Phase.PLACING || phase == Phase.STOPPING;
        if (hopeless) {
            fail(failed.reason(), now);
        } else {
            follow(recovery.onDead(List.of(failed.rank()), failed.reason(), now), now);
        }
    }

    private void onStopped(int rank, long now) {
        switch (phase) {
            case STOPPING -> {
                ranks.stopped(rank);
                finishIfStopped();
            }
            case PLACING -> {
                ranks.stopped(rank);
                fail("%s stopped by itself".formatted(ranks.name(rank)), now);
            }
            case RUNNING, RECOVERING -> onDead(List.of(rank), "it stopped by itself", now);
        }
    }

    private void onLinkLost(RankEvent.LinkLost lost, long now) {
        if (phase == Phase.PLACING) {
            fail(lost.reason(), now);
        } else if (lost.epoch() == ranks.epoch() && phase != Phase.STOPPING) {
            follow(recovery.onLinkLost(lost.reason(), now), now);
        }
    }

    /** Proof that the media driver is gone, and with it every link. */
    public List<Effect> onLinkDied(String how, long now) {
        String cause = "the media driver died: " + how;
        switch (phase) {
            case PLACING -> fail(cause, now);
            case RUNNING, RECOVERING -> follow(recovery.onLinkDied(cause, now), now);
            case STOPPING -> {} // nobody needs it any more
        }
        return out.drain();
    }

    /**
     * Another media driver serves this directory.
     *
     * @param former directory of the driver whose place it takes; empty where all processes of the
     *     run use one
     */
    public List<Effect> onLinkRestarted(String former, String directory, long now) {
        if (phase == Phase.RECOVERING) {
            follow(recovery.onLinkRestarted(former, directory, now), now);
        }
        return out.drain();
    }

    // ---- the end --------------------------------------------------------------------------------

    /** The user wants the run to finish its step, save, and end. */
    public List<Effect> onInterrupt(long now) {
        driver.interrupt();
        if (phase == Phase.PLACING || phase == Phase.RECOVERING) { // who knows when it comes back
            stop(now);
        }
        return out.drain();
    }

    private void fail(String reason, long now) {
        if (failure == null && phase != Phase.STOPPING) {
            failure = reason;
            out.add(new Effect.Journal(new JournalRecord.Failed(driver.completed(), reason)));
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

    private void finishIfStopped() {
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
            case RUNNING -> {
                if (noticeSilence(now)) {
                    noticeStalls(now);
                }
            }
            case RECOVERING -> {
                if (noticeSilence(now)) {
                    follow(recovery.onTick(now), now);
                }
            }
            case STOPPING -> {
                if (now - stoppingSinceNanos > plan.timeouts().stop().toNanos()) {
                    LOG.warn("run {}: not stopped in time: {}", plan.runId(), ranks.missing());
                    finish();
                }
            }
        }
        return out.drain();
    }

    /** False if somebody is silent who was not. */
    private boolean noticeSilence(long now) {
        List<Integer> silent = ranks.newlySilent(now, plan.timeouts().lease());
        if (silent.isEmpty()) {
            return true;
        }
        String cause =
                silent.stream()
                        .map(rank -> ranks.silence(rank, now, plan.timeouts().lease()))
                        .collect(Collectors.joining("; "));
        follow(recovery.onSilent(silent, cause, now), now);
        return false;
    }

    private void noticeStalls(long now) {
        List<RankTable.Row> rows = ranks.rows();
        boolean waiting = driver.waitsForRanks();
        stalls.report(rows, waiting, now)
                .ifPresent(text -> out.notify(listener -> listener.onStall(text)));
        stalls.hopeless(rows, waiting, now).ifPresent(reason -> fail(reason, now));
    }
}
