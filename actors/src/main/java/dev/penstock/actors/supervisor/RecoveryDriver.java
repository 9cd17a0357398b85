package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings a run back, in two phases. What happens meanwhile starts it over in a higher epoch, see
 * {@link RecoveryCauses}.
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
    private final Links links;
    private final RecoveryDecision decision;
    private final RecoveryPatience patience;

    /** The recovery under way; null between two. */
    private @Nullable RecoveryAttempt attempt;

    RecoveryDriver(
            RunPlan plan,
            RecoveryPolicy policy,
            RankTable ranks,
            Placer placer,
            Links links,
            Outbox out,
            StepDriver driver) {
        this.plan = plan;
        this.ranks = ranks;
        this.placer = placer;
        this.out = out;
        this.driver = driver;
        this.links = links;
        this.decision = new RecoveryDecision(plan, ranks, placer, links, out, driver);
        this.patience = new RecoveryPatience(plan, policy, ranks, links, out);
    }

    // ---- raising ------------------------------------------------------------------------------

    /** The recovery under way, if there is one. */
    Optional<RecoveryAttempt> underWay() {
        return Optional.ofNullable(attempt);
    }

    /** Whether ranks stop, and nothing is decided yet. */
    boolean isPreparing() {
        return attempt != null && attempt.restart == null;
    }

    /**
     * Whether a run that is to end need not come back first: nobody knows when it would, or all of
     * it is in a checkpoint.
     */
    boolean hasNothingToSaveSoon() {
        RecoveryAttempt under = attempt;
        return driver.lastCommit() == plan.steps().completed()
                || (under != null
                        && (under.wentBack
                                || under.parkedSinceNanos >= 0
                                || under.noRoomSinceNanos >= 0));
    }

    /** The recovery under way, or another. */
    RecoveryAttempt attempt(String cause, long now) {
        RecoveryAttempt under = attempt;
        if (under == null) {
            under = new RecoveryAttempt(cause, now, driver.lastCommit());
            attempt = under;
        }
        return under;
    }

    /** Another epoch, in which all ranks prepare. */
    NextAction raise(RecoveryAttempt under, String cause, long now) {
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
                out.tell(rank, new RankCommand.Prepare(epoch));
            }
        }
        decision.askAhead(under);
        decideIfReady(under, now);
        return NextAction.GO_ON;
    }

    // ---- preparing ------------------------------------------------------------------------------

    /**
     * A rank spoke; one that was silent, or hosted for an earlier epoch, is told what it missed.
     */
    void onHeard(int rank, boolean wasSilent) {
        RecoveryAttempt under = attempt;
        if (under != null && under.restart == null && wasSilent) {
            out.tell(rank, new RankCommand.Prepare(ranks.epoch()));
        }
    }

    NextAction onPrepared(RankEvent.Prepared prepared, long now) {
        RecoveryAttempt under = attempt;
        if (under == null || under.restart != null) {
            return NextAction.GO_ON;
        }
        ranks.prepared(prepared.rank());
        under.prepared.put(prepared.rank(), prepared);
        decideIfReady(under, now);
        return NextAction.GO_ON;
    }

    /** A new driver serves this directory instead of its former one. */
    NextAction onLinkRestarted(String former, String directory, long now) {
        links.moved(former, directory);
        return retry(now);
    }

    /** Something that the decision may have waited for has happened. */
    NextAction retry(long now) {
        RecoveryAttempt under = attempt;
        if (under != null && under.restart == null) {
            decideIfReady(under, now);
        }
        return NextAction.GO_ON;
    }

    private void decideIfReady(RecoveryAttempt under, long now) {
        List<Integer> silent = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            boolean unheardOf = !ranks.hasNode(rank) && !under.dead.get(rank);
            if (unheardOf && now < under.gathersUntilNanos) {
                return; // somebody may still say that it has it
            }
            if (ranks.isSilent(rank) || unheardOf) {
                silent.add(rank);
            } else if (ranks.hasNode(rank) && !under.prepared.containsKey(rank)) {
                return; // its answer, its death or its silence comes
            }
        }
        if (links.areDown() || driver.publishing()) {
            return;
        }
        boolean majority = 2 * under.prepared.size() > ranks.size();
        if (!silent.isEmpty() && !majority) {
            patience.park(under, silent, now);
            return;
        }
        silent.forEach(rank -> exclude(under, rank));
        decision.decide(under, now);
    }

    private void exclude(RecoveryAttempt under, int rank) {
        String reason =
                "run %s goes on in epoch %d without %s, which was silent for too long"
                        .formatted(plan.runId(), ranks.epoch(), ranks.name(rank));
        out.tell(rank, new RankCommand.Fence(ranks.epoch(), reason));
        ranks.node(rank).ifPresent(placer::remove);
        under.dead.set(rank);
        under.prepared.remove(rank); // what it holds, mirrors too, is out of reach
        ranks.vacate(rank);
    }

    // ---- resuming -------------------------------------------------------------------------------

    /** A node is there that was not. */
    NextAction onNode(long now) {
        RecoveryAttempt under = attempt;
        if (under == null || under.restart == null) {
            return retry(now);
        }
        decision.onNode(under, now);
        return NextAction.GO_ON;
    }

    /** What a rank's start waits for. */
    NextAction onNoRoom(String line, long now) {
        RecoveryAttempt under = attempt;
        return under == null ? NextAction.GO_ON : patience.onNoRoom(under, line, now);
    }

    /** Whether nodes have room for ranks whose mirrors they hold. */
    NextAction onRoom(Map<Integer, NodeInfo> asked, boolean granted, long now) {
        RecoveryAttempt under = attempt;
        if (under != null && under.roomAskedFor.equals(asked)) {
            under.hasRoom = Optional.of(granted);
        }
        return retry(now);
    }

    /** A rank was hosted; if the epoch has moved on since it was asked for, it is told. */
    NextAction onHosted(int rank, int birthEpoch, long now) {
        RecoveryAttempt under = attempt;
        if (under == null) {
            return NextAction.GO_ON;
        }
        if (under.restart != null) {
            return finishIfBack(under, now);
        }
        if (birthEpoch < ranks.epoch()) {
            out.tell(rank, new RankCommand.Prepare(ranks.epoch()));
        }
        return NextAction.GO_ON;
    }

    /** A rank is open again, with state and links. */
    NextAction onBack(int rank, long now) {
        RecoveryAttempt under = attempt;
        if (under == null || under.restart == null) {
            return NextAction.GO_ON;
        }
        under.back.set(rank);
        return finishIfBack(under, now);
    }

    private NextAction finishIfBack(RecoveryAttempt under, long now) {
        if (under.back.cardinality() < ranks.size() || !ranks.allOpen()) {
            return NextAction.GO_ON; // that a rank opened may be heard before its node says where
        }
        Optional<String> mixed = ranks.mixedFingerprints();
        if (mixed.isPresent()) {
            return new NextAction.Broken(mixed.get());
        }
        attempt = null;
        if (under.leavesOut()) {
            driver.skip(under.skippedStep);
        }
        if (under.takesUp || under.opens) {
            List<String> devices = ranks.devices();
            String fingerprint = ranks.fingerprint();
            out.notify(listener -> listener.onOpened(devices, fingerprint));
        }
        List<Integer> homes = ranks.homes();
        out.notify(listener -> listener.onPlaced(homes));
        var report = under.report(ranks.epoch(), driver.completed(), now);
        LOG.info("run {}: {}", plan.runId(), report);
        out.notify(listener -> listener.onRecovery(report));
        for (int i = 0; i < under.sparesUsed; i++) {
            out.add(new Effect.StartProcess(Optional.empty()));
        }
        return driver.resume(now);
    }

    NextAction onTick(long now) {
        RecoveryAttempt under = attempt;
        if (under == null) {
            return NextAction.GO_ON;
        }
        patience.explain(under, now);
        if (under.restart == null) {
            decideIfReady(under, now);
        }
        boolean waitsForFiles = under.restart == null && driver.publishing();
        return waitsForFiles
                ? NextAction.GO_ON
                : patience.exhausted(under, now)
                        .<NextAction>map(NextAction.Broken::new)
                        .orElse(NextAction.GO_ON);
    }
}
