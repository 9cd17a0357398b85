package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.RecoveryAttempt.Origin;
import dev.penstock.actors.supervisor.RecoveryAttempt.Reason;
import dev.penstock.actors.supervisor.RecoveryPhase.Preparing;
import dev.penstock.actors.supervisor.RecoveryPhase.Resuming;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings a run back, in two {@linkplain RecoveryPhase phases}. What happens meanwhile starts it
 * over in a higher epoch, see {@link RecoveryCauses}.
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

    private static final int AT_ONCE = 2;
    private static final Duration FIRST_PAUSE = Duration.ofMillis(250);
    private static final int MOST_DOUBLINGS = 10;

    private final RunPlan plan;
    private final RankTable ranks;
    private final Placer placer;
    private final Outbox out;
    private final StepDriver driver;
    private final Links links;
    private final Absence absence;
    private final RecoveryDecision decision;
    private final RecoveryPatience patience;

    /** The recovery under way; null between two. */
    private @Nullable RecoveryPhase phase;

    /** The beginning of the phase in which orders to come back were given a second time. */
    private long repeatedSinceNanos = -1;

    /** How often the recovery under way was started over. */
    private int startedOver;

    private long raisedNanos;

    /** Until then the recovery under way decides nothing. */
    private long pausesUntilNanos;

    private final RecoveryPatience.MemoryPause memoryPause = new RecoveryPatience.MemoryPause();

    /** Whether a media driver is to be started when the pause is over. */
    private boolean owesLink;

    /** When ranks were told last to prepare. */
    private long toldToPrepareNanos;

    RecoveryDriver(
            RunPlan plan,
            RecoveryPolicy policy,
            RankTable ranks,
            Placer placer,
            Links links,
            ToldLocations told,
            Outbox out,
            StepDriver driver,
            Absence absence) {
        this.plan = plan;
        this.ranks = ranks;
        this.placer = placer;
        this.out = out;
        this.driver = driver;
        this.absence = absence;
        this.links = links;
        this.decision =
                new RecoveryDecision(plan, ranks, placer, links, told, out, driver, absence);
        this.patience = new RecoveryPatience(plan, policy, ranks, links, out);
    }

    // ---- raising ------------------------------------------------------------------------------

    boolean isUnderWay() {
        return phase != null;
    }

    /** Whether ranks stop, and nothing is decided yet. */
    boolean isPreparing() {
        return phase instanceof Preparing;
    }

    /** Whether ranks that another supervisor hosted are still taken in. */
    boolean gathers() {
        return phase instanceof Preparing under && under.attempt().takesUp();
    }

    /**
     * Whether a run that is to end need not come back first: nobody knows when it would, or all of
     * it is in a checkpoint.
     */
    boolean hasNothingToSaveSoon() {
        RecoveryPhase under = phase;
        return driver.lastCommit() == plan.steps().completed()
                || (under != null
                        && (under.attempt().wentBack() || under.attempt().waits().areOpenEnded()));
    }

    /** The recovery under way, which this loss starts over; or one that begins with it. */
    RecoveryAttempt after(String cause, long now) {
        RecoveryPhase under = phase;
        return under == null ? begin(new Reason.Loss(), cause, now) : under.attempt();
    }

    /** A recovery of a run in which none is under way. */
    RecoveryAttempt begin(Reason reason, String cause, long now) {
        return RecoveryAttempt.begin(new Origin(cause, reason, now, driver.lastCommit()));
    }

    /** Another epoch, in which all ranks prepare. */
    NextAction raise(RecoveryAttempt attempt, String cause, long now) {
        int epoch = ranks.epoch() + 1;
        startedOver = isUnderWay() ? startedOver + 1 : 0;
        pausesUntilNanos = startedOver <= AT_ONCE ? now : raisedNanos + apart(); // may be negative
        raisedNanos = now;
        if (startedOver == 0) {
            memoryPause.begin(now);
        }
        LOG.warn(
                "run {}: {}; {} in epoch {}",
                plan.runId(),
                cause,
                attempt.isOfALoss() ? "recovering" : "goes on",
                epoch);
        ranks.enter(epoch);
        out.add(new Effect.Journal(new JournalRecord.EpochRaised(epoch, cause)));
        out.notify(listener -> listener.onRecovering(epoch, cause));
        driver.halt();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.isSilent(rank)) {
                out.tell(rank, new RankCommand.Prepare(epoch, cause));
            }
        }
        toldToPrepareNanos = now;
        if (memoryPause.lengthen(cause, now)) {
            patience.tellPause(memoryPause.untilNanos() - now);
        }
        long since = Math.max(now, memoryPause.untilNanos()); // nobody is late in a pause
        Preparing under = decision.askAhead(Preparing.begin(attempt, since), now);
        phase = decideIfReady(under, now);
        return NextAction.GO_ON;
    }

    /** Whether this failure has been counted with another one of the same try. */
    boolean isCounted(String cause, long now) {
        return isPreparing() && memoryPause.knows(cause, now);
    }

    /** Has a media driver started, not before there may be memory for it. */
    void restartLink(long now) {
        owesLink = memoryPause.isOn(now);
        if (!owesLink) {
            out.add(new Effect.RestartLink(links.down()));
        }
    }

    /** Somebody waits for the run to end: nothing is put off any more because memory was full. */
    NextAction hurry(long now) {
        memoryPause.end(now);
        if (owesLink) {
            restartLink(now);
        }
        return retry(now);
    }

    /**
     * What fails again and again is given time to pass: a run bears only so many recoveries, which
     * would be over in a second.
     *
     * @return how far apart tries are
     */
    private long apart() {
        return Math.min(
                FIRST_PAUSE.toNanos() << Math.min(startedOver - AT_ONCE - 1, MOST_DOUBLINGS),
                plan.timeouts().lease().toNanos());
    }

    // ---- preparing ------------------------------------------------------------------------------

    /**
     * A rank spoke; one that was silent, or hosted for an earlier epoch, is told what it missed.
     */
    void onHeard(int rank, boolean wasSilent) {
        if (isPreparing() && wasSilent) {
            out.tell(rank, new RankCommand.Prepare(ranks.epoch()));
        }
    }

    /** A rank that another supervisor hosted lives. */
    void onFound(int rank) {
        know(attempt -> attempt.lives(rank));
    }

    /** Proof that a rank lives nowhere. */
    NextAction onNowhere(int rank, long now) {
        if (!ranks.hasNode(rank) && !ranks.isAbsent(rank)) {
            know(attempt -> attempt.died(rank));
        }
        return retry(now);
    }

    private void know(UnaryOperator<RecoveryAttempt> more) {
        RecoveryPhase under = phase;
        if (under != null) {
            phase = under.with(more.apply(under.attempt()));
        }
    }

    NextAction onPrepared(RankEvent.Prepared prepared, long now) {
        if (phase instanceof Preparing under) {
            ranks.prepared(prepared);
            // gradients are a step only to a commit that will be told again
            var counts = driver.repeatsCommit() ? prepared : prepared.withoutGradients();
            boolean ofThisPlan = prepared.layout().equals(ranks.layout());
            phase = decideIfReady(under.answered(ofThisPlan ? counts : counts.withoutState()), now);
        }
        return NextAction.GO_ON;
    }

    /** A new driver serves this directory instead of its former one. */
    NextAction onLinkRestarted(String former, String directory, long now) {
        links.moved(former, directory);
        return retry(now);
    }

    /** Whether nodes have room for ranks whose mirrors they hold. */
    NextAction onRoom(Map<Integer, NodeInfo> asked, boolean granted, long now) {
        if (phase instanceof Preparing under) {
            phase = under.onRoom(asked, granted);
        }
        return retry(now);
    }

    /** The plan without these ranks was made, unless there is none. */
    NextAction onPlan(Set<Integer> absent, Optional<RunPlan> made, long now) {
        if (phase instanceof Preparing under && made.stream().allMatch(ranks::canTakeOver)) {
            phase = under.with(under.detour().answered(absent, made));
        }
        return retry(now);
    }

    /** Something that the decision may have waited for has happened. */
    NextAction retry(long now) {
        if (phase instanceof Preparing under) {
            phase = decideIfReady(under, now);
        }
        return NextAction.GO_ON;
    }

    private RecoveryPhase decideIfReady(Preparing gathering, long now) {
        Preparing under = gathering;
        List<Integer> silent = new ArrayList<>();
        for (RankTable.Row row : ranks.rows()) {
            int rank = row.rank();
            boolean unheardOf =
                    !ranks.hasNode(rank)
                            && !under.attempt().dead().contains(rank)
                            && !under.attempt().joins(rank);
            if (unheardOf && under.attempt().gathersAt(now)) {
                return under; // somebody may still say that it has it
            }
            if (unheardOf && under.attempt().knowsAllAt(now)) {
                under = under.with(under.attempt().died(rank));
                continue;
            }
            if (ranks.isSilent(rank) || unheardOf) {
                silent.add(rank);
            } else if (ranks.hasNode(rank) && !under.hasAnswered(rank)) {
                return under; // its answer, its death or its silence comes
            }
        }
        if (links.areDown()
                || driver.publishing()
                || driver.looksForOlder()
                || now < pausesUntilNanos
                || memoryPause.isOn(now)) {
            return under;
        }
        boolean majority = 2 * under.prepared().size() > ranks.present();
        if (!silent.isEmpty() && !majority) {
            return patience.park(under, silent, now);
        }
        Preparing rest = under;
        for (int rank : silent) {
            rest = exclude(rest, rank);
        }
        return decision.decide(rest, now);
    }

    private Preparing exclude(Preparing under, int rank) {
        String reason =
                "run %s goes on in epoch %d without %s, which was silent for too long"
                        .formatted(plan.runId(), ranks.epoch(), ranks.name(rank));
        out.tell(rank, new RankCommand.Fence(ranks.epoch(), reason));
        ranks.node(rank).ifPresent(placer::remove);
        ranks.vacate(rank);
        return under.excluding(rank);
    }

    // ---- resuming -------------------------------------------------------------------------------

    /** A node is there that was not. */
    NextAction onNode(long now) {
        if (phase instanceof Resuming under) {
            phase = decision.onNode(under, now);
        }
        return retry(now);
    }

    /** What a rank's start waits for. */
    NextAction onNoRoom(String line, long now) {
        RecoveryPhase under = phase;
        if (under == null) {
            return NextAction.GO_ON;
        }
        RecoveryPhase waiting = patience.onNoRoom(under, now);
        if (waiting instanceof Preparing preparing && patience.isOverForRoom(waiting, now)) {
            Preparing crowding = preparing.with(preparing.attempt().crowding());
            waiting = decideIfReady(crowding.with(preparing.refuges().anew()), now);
        }
        phase = waiting;
        return patience.afterNoRoom(waiting, line, now);
    }

    /** A rank was hosted; if the epoch has moved on since it was asked for, it is told. */
    NextAction onHosted(int rank, int birthEpoch, long now) {
        if (phase instanceof Resuming under) {
            return finishIfBack(under, now);
        }
        if (isPreparing() && birthEpoch < ranks.epoch()) {
            out.tell(rank, new RankCommand.Prepare(ranks.epoch()));
        }
        return NextAction.GO_ON;
    }

    /** A rank is open again, with state and links. */
    NextAction onBack(int rank, long now) {
        if (phase instanceof Resuming under) {
            Resuming more = under.cameBack(rank);
            phase = more;
            return finishIfBack(more, now);
        }
        return NextAction.GO_ON;
    }

    private NextAction finishIfBack(Resuming under, long now) {
        if (under.back().size() < ranks.present() || !ranks.allOpen()) {
            return NextAction.GO_ON; // that a rank opened may be heard before its node says where
        }
        Optional<String> mixed = ranks.mixedFingerprints();
        if (mixed.isPresent()) {
            return new NextAction.Broken(mixed.get());
        }
        phase = null;
        absence.forget();
        RecoveryAttempt attempt = under.attempt();
        attempt.leftOut().ifPresent(driver::skip);
        if (attempt.opens()) {
            List<String> devices = ranks.devices();
            String fingerprint = ranks.fingerprint();
            out.notify(listener -> listener.onOpened(devices, fingerprint));
        }
        List<Integer> homes = ranks.homes();
        out.notify(listener -> listener.onPlaced(homes));
        var report =
                attempt.report(under.source().reported(), ranks.epoch(), driver.completed(), now);
        LOG.info("run {}: {}", plan.runId(), report);
        out.notify(listener -> listener.onRecovery(report));
        for (int i = 0; i < attempt.sparesUsed(); i++) {
            out.add(new Effect.StartProcess(Optional.empty()));
        }
        return driver.resume(now);
    }

    NextAction onTick(long now) {
        RecoveryPhase under = phase;
        if (under == null) {
            return NextAction.GO_ON;
        }
        if (owesLink) {
            restartLink(now);
        }
        under = patience.explain(under, now);
        if (under instanceof Preparing preparing) {
            under = decideIfReady(preparing, now);
        }
        phase = under;
        switch (under) {
            case Preparing preparing -> repeatPrepare(preparing, now);
            case Resuming resuming -> repeatOrders(resuming, now);
        }
        boolean waitsForFiles =
                under instanceof Preparing && (driver.publishing() || driver.looksForOlder());
        Optional<String> exhausted =
                waitsForFiles ? Optional.empty() : patience.exhausted(under, now);
        return exhausted.isEmpty() ? NextAction.GO_ON : onExhausted(under, exhausted.get(), now);
    }

    /**
     * Several times a lease, to the silent too: a rank that did not hear of this supervisor renews
     * its lease with the one before.
     */
    private void repeatPrepare(Preparing under, long now) {
        if (now - toldToPrepareNanos < plan.timeouts().lease().toNanos() / 3) {
            return;
        }
        toldToPrepareNanos = now;
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (ranks.hasNode(rank) && !under.hasAnswered(rank)) {
                out.tell(rank, new RankCommand.Prepare(ranks.epoch()));
            }
        }
    }

    /** Once in a phase, when half its time has passed. */
    private void repeatOrders(Resuming under, long now) {
        if (patience.isHalfExhausted(under, now) && repeatedSinceNanos != under.sinceNanos()) {
            repeatedSinceNanos = under.sinceNanos();
            decision.repeat(under);
        }
    }

    /** Ranks that are spoken to and heard, and have not done what they were asked. */
    private List<Integer> unanswered(RecoveryPhase under) {
        return IntStream.range(0, ranks.size())
                .filter(rank -> ranks.hasNode(rank) && !ranks.isSilent(rank))
                .filter(rank -> !under.hasAnswered(rank))
                .boxed()
                .toList();
    }

    /**
     * A rank that says it lives and does nothing for so long hangs: it is left behind if a majority
     * does not. One inside an op is waited for.
     */
    private NextAction onExhausted(RecoveryPhase under, String reason, long now) {
        List<Integer> unanswered = unanswered(under);
        if (unanswered.isEmpty() || links.areDown()) {
            return new NextAction.Broken(reason);
        }
        return switch (under) {
            case Resuming _ ->
                    ranks.rows().stream().map(RankTable.Row::rank).allMatch(ranks::hasNode)
                            ? new NextAction.Stalled(reason)
                            : new NextAction.Broken(reason);
            case Preparing preparing -> {
                if (unanswered.stream().anyMatch(ranks::works)) {
                    yield NextAction.GO_ON;
                }
                if (2 * preparing.prepared().size() <= ranks.present()) {
                    yield new NextAction.Broken(reason);
                }
                LOG.warn("run {}: {}; they are left behind", plan.runId(), reason);
                unanswered.forEach(ranks::silent);
                phase = decideIfReady(preparing.since(now), now);
                yield NextAction.GO_ON;
            }
        };
    }
}
