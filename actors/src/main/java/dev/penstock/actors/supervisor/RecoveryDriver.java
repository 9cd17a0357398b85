package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.shard.RankBirth;
import dev.penstock.actors.shard.RankEvent;
import dev.penstock.actors.shard.RankOrder;
import dev.penstock.actors.shard.RankStart;
import dev.penstock.actors.spi.RecoveryReport.Restart;
import dev.penstock.actors.spi.RunPlan;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings a run back after a death, in two phases. What dies meanwhile starts it over in a higher
 * epoch.
 *
 * <pre>
 *   raise: epoch + 1, Prepare to all --every living rank prepared--> decide: from where?
 *   decide: Resume to the living, HostRank for the dead --all resumed or open--> finish
 * </pre>
 *
 * A rank whose death is not proved is left out only if a majority of all ranks is prepared;
 * otherwise the run parks until it is heard again.
 */
final class RecoveryDriver {
    private static final Logger LOG = LoggerFactory.getLogger(RecoveryDriver.class);

    private final RunPlan plan;
    private final RankTable ranks;
    private final Placer placer;
    private final Outbox out;
    private final StepDriver driver;
    private final RecoveryPolicy policy;
    private final RecoveryBudget budget;
    private final NotFiniteSteps notFinite;

    /** The recovery under way; null between two. */
    private @Nullable RecoveryAttempt attempt;

    private final Links links = new Links();
    private boolean linkIsDown;

    RecoveryDriver(
            RunPlan plan,
            RecoveryPolicy policy,
            RankTable ranks,
            Placer placer,
            Outbox out,
            StepDriver driver) {
        this.plan = plan;
        this.ranks = ranks;
        this.placer = placer;
        this.out = out;
        this.driver = driver;
        this.policy = policy;
        this.budget = new RecoveryBudget(policy);
        this.notFinite = new NotFiniteSteps(policy);
    }

    // ---- what raises the epoch ------------------------------------------------------------------

    /** Ranks are gone for good: their processes ended, or they did. */
    Turn onDead(List<Integer> gone, String cause, long now) {
        gone.forEach(ranks::vacate);
        Optional<String> refused = budget.spend(cause, now);
        if (refused.isPresent()) {
            return new Turn.Broken(refused.get());
        }
        RecoveryAttempt under = attempt(cause, now);
        for (int rank : gone) {
            under.detectNanos = Math.max(under.detectNanos, ranks.silentNanos(rank, now));
            under.dead.set(rank);
        }
        return raise(under, cause, now);
    }

    /** Ranks say nothing any more, which proves nothing. */
    Turn onSilent(List<Integer> silent, String cause, long now) {
        RecoveryAttempt under = attempt;
        for (int rank : silent) {
            ranks.silent(rank);
        }
        if (under != null && under.restart == null) {
            return decideIfReady(under, now); // nobody was promised anything in this epoch
        }
        Optional<String> refused = budget.spend(cause, now);
        if (refused.isPresent()) {
            return new Turn.Broken(refused.get());
        }
        under = attempt(cause, now);
        under.detectNanos = Math.max(under.detectNanos, ranks.silentNanos(silent.getFirst(), now));
        return raise(under, cause, now);
    }

    /** Links broke; all ranks live. */
    Turn onLinkLost(String cause, long now) {
        Optional<String> refused = budget.spend(cause, now);
        return refused.isPresent()
                ? new Turn.Broken(refused.get())
                : raise(attempt(cause, now), cause, now);
    }

    /** The media driver is gone, and with it every link. */
    Turn onLinkDied(String cause, long now) {
        linkIsDown = true;
        Turn turn = onLinkLost(cause, now);
        if (turn instanceof Turn.GoOn) {
            out.add(new Effect.RestartLink());
        }
        return turn;
    }

    /** Ranks are gone, and the media driver with them. */
    Turn onDeadWithLink(List<Integer> gone, String cause, long now) {
        linkIsDown = true;
        Turn turn = onDead(gone, cause, now);
        if (turn instanceof Turn.GoOn) {
            out.add(new Effect.RestartLink());
        }
        return turn;
    }

    /** Nothing of a step may be applied; all ranks live. */
    Turn onNotFinite(long step, String cause, RecoveryPolicy.NonFinite policy, long now) {
        Optional<String> refused =
                notFinite
                        .refuse(step, cause, driver.lastCommit())
                        .or(() -> budget.spendOnLiving(cause, now));
        if (refused.isPresent()) {
            return new Turn.Broken(refused.get());
        }
        RecoveryAttempt under = attempt(cause, now);
        under.skippedStep = policy == RecoveryPolicy.NonFinite.SKIP ? step : -1;
        under.wantsBack = policy == RecoveryPolicy.NonFinite.ROLLBACK;
        return raise(under, cause, now);
    }

    /**
     * Ranks leave their nodes, and all go on from the checkpoint that has their last step. One
     * whose node hosts others for their dead nodes' sake stays.
     */
    Turn onMove(Set<Integer> wanted, long now) {
        List<Integer> moving = wanted.stream().filter(this::mayLeave).sorted().toList();
        if (moving.isEmpty()) {
            return driver.resume(now);
        }
        String names = moving.stream().map(ranks::name).collect(Collectors.joining(" and "));
        String cause = "%s: on the way to other nodes".formatted(names);
        RecoveryAttempt under = attempt(cause, now);
        under.wantsBack = true;
        for (int rank : moving) {
            NodeInfo node = ranks.node(rank).orElseThrow();
            out.tell(rank, new RankOrder.Stop(ranks.epoch()));
            if (isFor(node, rank)) {
                placer.remove(node);
                out.add(new Effect.Leave(node));
            }
            ranks.vacate(rank);
            under.dead.set(rank);
        }
        return raise(under, cause, now);
    }

    private boolean mayLeave(int rank) {
        return ranks.node(rank)
                .filter(node -> !isFor(node, rank) || ranks.on(node).size() == 1)
                .isPresent();
    }

    private static boolean isFor(NodeInfo node, int rank) {
        return node.rank().equals(Optional.of(rank));
    }

    // ---- after a supervisor's death -------------------------------------------------------------

    /** Another supervisor had the run: asks who hosts what, for a lease at most. */
    void takeUp(long now) {
        RecoveryAttempt under = attempt("the supervisor was gone, another took the run up", now);
        under.takesUp = true;
        under.gathersUntilNanos = now + plan.timeouts().lease().toNanos();
        raise(under, under.cause, now);
    }

    /**
     * A node says which ranks it hosts. One that nobody else has is taken into the run; one that
     * lives elsewhere too, or comes when all is decided, is sent away.
     */
    Turn onHostedRanks(NodeInfo node, List<HostedRank> hosted, long now) {
        RecoveryAttempt under = attempt;
        for (HostedRank each : hosted) {
            int rank = each.rank();
            if (under != null && under.gathers() && !ranks.hasNode(rank)) {
                ranks.found(each, node, now);
                under.dead.clear(rank);
                out.tell(rank, new RankOrder.Prepare(ranks.epoch()));
            } else if (!ranks.isTheOne(each, node)) {
                LOG.warn("run {} has no use for {} of {}", plan.runId(), each, node);
                out.add(new Effect.Dismiss(node, each, new RankOrder.Stop(ranks.epoch())));
            }
        }
        List<Integer> gone = ranks.lostAgain(node, hosted);
        return gone.isEmpty() ? Turn.GO_ON : onDead(gone, "a rank ended unheard", now);
    }

    /** Proof that a rank lives nowhere. */
    Turn onNowhere(int rank, long now) {
        RecoveryAttempt under = attempt;
        if (under == null || ranks.hasNode(rank)) {
            return Turn.GO_ON;
        }
        under.dead.set(rank);
        return retry(now);
    }

    private RecoveryAttempt attempt(String cause, long now) {
        RecoveryAttempt under = attempt;
        if (under == null) {
            under = new RecoveryAttempt(cause, now, driver.lastCommit());
            attempt = under;
        }
        return under;
    }

    private Turn raise(RecoveryAttempt under, String cause, long now) {
        int epoch = ranks.epoch() + 1;
        LOG.warn("run {}: {}; recovering in epoch {}", plan.runId(), cause, epoch);
        ranks.enter(epoch);
        out.add(new Effect.Journal(new JournalRecord.EpochRaised(epoch, cause)));
        out.notify(listener -> listener.onRecovering(epoch, cause));
        driver.halt();
        under.startOver();
        under.raisedNanos = now;
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.isSilent(rank)) {
                out.tell(rank, new RankOrder.Prepare(epoch));
            }
        }
        return decideIfReady(under, now);
    }

    // ---- preparing ------------------------------------------------------------------------------

    /**
     * A rank spoke; one that was silent, or hosted for an earlier epoch, is told what it missed.
     */
    void onHeard(int rank, boolean wasSilent) {
        RecoveryAttempt under = attempt;
        if (under != null && under.restart == null && wasSilent) {
            out.tell(rank, new RankOrder.Prepare(ranks.epoch()));
        }
    }

    Turn onPrepared(RankEvent.Prepared prepared, long now) {
        RecoveryAttempt under = attempt;
        if (under == null || under.restart != null) {
            return Turn.GO_ON;
        }
        ranks.prepared(prepared.rank());
        under.prepared.put(prepared.rank(), prepared);
        return decideIfReady(under, now);
    }

    /** A new driver serves this directory instead of its former one. */
    Turn onLinkRestarted(String former, String directory, long now) {
        links.moved(former, directory);
        linkIsDown = false;
        return retry(now);
    }

    /** Something that the decision may have waited for has happened. */
    Turn retry(long now) {
        RecoveryAttempt under = attempt;
        return under != null && under.restart == null ? decideIfReady(under, now) : Turn.GO_ON;
    }

    private Turn decideIfReady(RecoveryAttempt under, long now) {
        List<Integer> silent = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            boolean unheardOf = !ranks.hasNode(rank) && !under.dead.get(rank);
            if (unheardOf && now < under.gathersUntilNanos) {
                return Turn.GO_ON; // somebody may still say that it has it
            }
            if (ranks.isSilent(rank) || unheardOf) {
                silent.add(rank);
            } else if (ranks.hasNode(rank) && !under.prepared.containsKey(rank)) {
                return Turn.GO_ON; // its answer, its death or its silence comes
            }
        }
        if (linkIsDown || driver.publishing()) {
            return Turn.GO_ON;
        }
        boolean majority = 2 * under.prepared.size() > ranks.size();
        if (!silent.isEmpty() && !majority) {
            park(under, silent, now);
            return Turn.GO_ON;
        }
        silent.forEach(rank -> exclude(under, rank));
        return decide(under, now);
    }

    private void park(RecoveryAttempt under, List<Integer> silent, long now) {
        under.raisedNanos = now;
        if (under.parkedSinceNanos < 0) {
            under.parkedSinceNanos = now;
            under.nextParkReportNanos = now;
        }
        if (now >= under.nextParkReportNanos) {
            under.nextParkReportNanos = now + plan.timeouts().stallReport().toNanos();
            String text =
                    "parked for %.1f s in epoch %d: %d of %d ranks are here, which is no majority; waits for %s"
                            .formatted(
                                    (now - under.parkedSinceNanos) / 1e9,
                                    ranks.epoch(),
                                    under.prepared.size(),
                                    ranks.size(),
                                    silent.stream()
                                            .map(ranks::name)
                                            .collect(Collectors.joining(", ")));
            out.notify(listener -> listener.onStall(text));
        }
    }

    private void exclude(RecoveryAttempt under, int rank) {
        String reason =
                "run %s goes on in epoch %d without %s, which was silent for too long"
                        .formatted(plan.runId(), ranks.epoch(), ranks.name(rank));
        out.tell(rank, new RankOrder.Fence(ranks.epoch(), reason));
        ranks.node(rank).ifPresent(placer::remove);
        under.dead.set(rank);
        under.prepared.remove(rank); // what it holds, mirrors too, is out of reach
        ranks.vacate(rank);
    }

    // ---- the decision ---------------------------------------------------------------------------

    private Turn decide(RecoveryAttempt under, long now) {
        long commit = driver.lastCommit();
        List<Integer> missing = missing();
        boolean even = !under.wantsBack && under.allReach(commit);
        under.decidedNanos = now;
        if (even && missing.isEmpty()) {
            under.restart = Restart.MEMORY;
            under.start = new RankStart.Kept();
        } else if (even && missing.stream().allMatch(r -> under.holder(r, commit).isPresent())) {
            under.restart = Restart.MIRROR;
            under.start = new RankStart.Kept();
        } else if (homesMatter() && anyWithoutNode(under, missing)) {
            return Turn.GO_ON; // nobody opens links before all are somewhere
        } else {
            under.restart = Restart.CHECKPOINT;
            under.start = driver.rollBack();
            under.wentBack = true;
        }
        under.mirrors = mirrors(under);
        missing.forEach(rank -> settle(under, rank, now));
        for (int rank : under.prepared.keySet()) {
            out.tell(
                    rank,
                    new RankOrder.Resume(
                            ranks.epoch(),
                            under.start,
                            under.mirrors,
                            ranks.homes(),
                            links.of(ranks.node(rank).orElseThrow()),
                            links.now(ranks.addresses())));
        }
        for (int rank : missing) {
            if (ranks.hasNode(rank)) {
                host(under, rank);
            } else {
                out.add(new Effect.StartProcess(Optional.of(rank)));
            }
        }
        return finishIfBack(under, now);
    }

    private boolean homesMatter() {
        return placer.addressesMatter() || !plan.grid().isPipelineAlone();
    }

    /** Whether a rank has nowhere to go yet; a process is asked for, once. */
    private boolean anyWithoutNode(RecoveryAttempt under, List<Integer> missing) {
        List<Integer> homeless =
                missing.stream().filter(rank -> placer.replacementFor(rank).isEmpty()).toList();
        for (int rank : homeless) {
            if (!under.askedFor.get(rank)) {
                under.askedFor.set(rank);
                out.add(new Effect.StartProcess(Optional.of(rank)));
            }
        }
        return !homeless.isEmpty();
    }

    private List<Integer> missing() {
        List<Integer> missing = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.hasNode(rank)) {
                missing.add(rank);
            }
        }
        return missing;
    }

    /**
     * Who holds whose mirror from now on, such that no death takes both; what its holder has not is
     * filled. From a checkpoint all mirrors start anew, as their ranks do.
     */
    private MirrorLayout mirrors(RecoveryAttempt under) {
        if (!plan.mirrors()) {
            return MirrorLayout.none(ranks.size());
        }
        List<Object> places = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            places.add(place(under, rank));
        }
        MirrorLayout layout = MirrorLayout.across(places);
        if (under.restart == Restart.CHECKPOINT) {
            return layout;
        }
        List<Integer> fills = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            RankEvent.Prepared holder = under.prepared.get(layout.holderOf(rank));
            if (holder == null || !RecoveryAttempt.holds(holder, rank, driver.lastCommit())) {
                fills.add(rank);
            }
        }
        return layout.filling(fills);
    }

    /** The process of a rank; of one that has none yet, a process of its own. */
    private Object place(RecoveryAttempt under, int rank) {
        Optional<NodeInfo> node = ranks.node(rank);
        if (node.isEmpty() && under.restart == Restart.MIRROR) {
            node = holderNode(under, rank);
        }
        return node.isPresent() ? node.get().process() : rank;
    }

    private Optional<NodeInfo> holderNode(RecoveryAttempt under, int rank) {
        return under.holder(rank, driver.lastCommit()).flatMap(ranks::node);
    }

    /** Gives a missing rank a node, if there is one for it. */
    private void settle(RecoveryAttempt under, int rank, long now) {
        Optional<NodeInfo> node =
                under.restart == Restart.MIRROR
                        ? holderNode(under, rank)
                        : placer.replacementFor(rank);
        node.ifPresent(
                chosen -> {
                    under.sparesUsed += chosen.spare() ? 1 : 0;
                    ranks.placed(rank, chosen, now);
                });
    }

    /** Has a placed rank opened, from what the decision says. */
    private void host(RecoveryAttempt under, int rank) {
        RankStart start = under.start;
        if (under.restart == Restart.MIRROR) {
            int holder = under.holder(rank, driver.lastCommit()).orElseThrow();
            start = new RankStart.FromMirror(holder, driver.lastCommit());
        }
        NodeInfo node = ranks.node(rank).orElseThrow();
        var birth =
                new RankBirth(
                        rank,
                        ranks.epoch(),
                        start,
                        under.mirrors,
                        ranks.homes(),
                        links.of(node),
                        links.now(ranks.addresses()));
        out.add(new Effect.HostRank(node, birth));
    }

    // ---- resuming -------------------------------------------------------------------------------

    /** A node is there that was not. */
    Turn onNode(long now) {
        RecoveryAttempt under = attempt;
        if (under == null || under.restart == null) {
            return retry(now);
        }
        for (int rank : missing()) {
            settle(under, rank, now);
            if (ranks.hasNode(rank)) {
                host(under, rank);
            }
        }
        return Turn.GO_ON;
    }

    /** What a rank's start waits for; the time until it is back counts from when there is room. */
    Turn onNoRoom(String line, long now) {
        RecoveryAttempt under = attempt;
        if (under == null) {
            return Turn.GO_ON;
        }
        under.raisedNanos = now;
        under.decidedNanos = now;
        under.noRoomSinceNanos = under.noRoomSinceNanos < 0 ? now : under.noRoomSinceNanos;
        return now - under.noRoomSinceNanos > policy.window().toNanos()
                ? new Turn.Broken(
                        "%s; for recovery.window = %d s the run %s"
                                .formatted(under.cause, policy.window().toSeconds(), line))
                : Turn.GO_ON;
    }

    /** A rank was hosted; if the epoch has moved on since it was asked for, it is told. */
    Turn onHosted(int rank, int birthEpoch, long now) {
        RecoveryAttempt under = attempt;
        if (under == null) {
            return Turn.GO_ON;
        }
        if (under.restart != null) {
            return finishIfBack(under, now);
        }
        if (birthEpoch < ranks.epoch()) {
            out.tell(rank, new RankOrder.Prepare(ranks.epoch()));
        }
        return Turn.GO_ON;
    }

    /** A rank is open again, with state and links. */
    Turn onBack(int rank, long now) {
        RecoveryAttempt under = attempt;
        if (under == null || under.restart == null) {
            return Turn.GO_ON;
        }
        under.back.set(rank);
        return finishIfBack(under, now);
    }

    private Turn finishIfBack(RecoveryAttempt under, long now) {
        if (under.back.cardinality() < ranks.size() || !ranks.allOpen()) {
            return Turn.GO_ON; // that a rank opened may be heard before its node says where
        }
        Optional<String> mixed = ranks.mixedFingerprints();
        if (mixed.isPresent()) {
            return new Turn.Broken(mixed.get());
        }
        attempt = null;
        if (under.leavesOut()) {
            driver.skip(under.skippedStep);
        }
        if (under.takesUp) {
            List<String> devices = ranks.devices();
            String fingerprint = ranks.fingerprint();
            out.notify(listener -> listener.onOpened(devices, fingerprint));
        }
        var report = under.report(ranks.epoch(), driver.completed(), now);
        LOG.info("run {}: {}", plan.runId(), report);
        out.notify(listener -> listener.onRecovery(report));
        for (int i = 0; i < under.sparesUsed; i++) {
            out.add(new Effect.StartProcess(Optional.empty()));
        }
        return driver.resume(now);
    }

    /** A rank may live and renew its lease, and yet hang in what it does. */
    private Turn unlessTooLate(RecoveryAttempt under, long now) {
        Duration limit =
                under.askedFor.isEmpty()
                        ? plan.timeouts().stallLimit()
                        : plan.timeouts().stallLimit().plus(plan.timeouts().start());
        if (driver.publishing() || now - under.raisedNanos <= limit.toNanos()) {
            return Turn.GO_ON;
        }
        return new Turn.Broken(
                "%s; the run waits for more than %d s for %s"
                        .formatted(under.cause, limit.toSeconds(), awaited(under)));
    }

    private String awaited(RecoveryAttempt under) {
        if (linkIsDown) {
            return "another media driver";
        }
        return ranks.rows().stream()
                .map(RankTable.Row::rank)
                .filter(rank -> !under.hasAnswered(rank))
                .map(ranks::name)
                .collect(Collectors.joining(", "));
    }

    /** Says whom the recovery waits for, once that takes long. */
    private void explain(RecoveryAttempt under, long now) {
        long patience = plan.timeouts().stallReport().toNanos();
        long waiting = now - (under.restart == null ? under.raisedNanos : under.decidedNanos);
        if (waiting < patience || now < under.nextParkReportNanos) {
            return;
        }
        under.nextParkReportNanos = now + patience;
        String text =
                "recovering in epoch %d: waits for %s since %.1f s"
                        .formatted(ranks.epoch(), awaited(under), waiting / 1e9);
        out.notify(listener -> listener.onStall(text));
    }

    /** Whether ranks are on their way back; the run goes on when they are. */
    boolean isUnderWay() {
        return attempt != null;
    }

    Turn onTick(long now) {
        RecoveryAttempt under = attempt;
        if (under == null) {
            return Turn.GO_ON;
        }
        explain(under, now);
        if (under.restart == null) {
            Turn turn = decideIfReady(under, now);
            return turn == Turn.GO_ON && under.restart == null ? unlessTooLate(under, now) : turn;
        }
        Duration limit = plan.timeouts().start();
        return now - under.decidedNanos > limit.toNanos()
                ? new Turn.Broken(
                        "%s; the run did not come back within %d s: %s"
                                .formatted(under.cause, limit.toSeconds(), ranks.missing()))
                : Turn.GO_ON;
    }
}
