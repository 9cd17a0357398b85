package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.VitalSigns;
import dev.penstock.actors.supervisor.RunCourse.Phase;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Supplier;

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
    private final RunPlan plan;
    private final RankTable ranks;
    private final Outbox out;
    private final Placer placer;
    private final FirstPlacement placement;
    private final StepDriver driver;
    private final RecoveryDriver recovery;
    private final RecoveryCauses causes;
    private final RunCourse course;
    private final Failures losses;
    private final Absence absence;
    private final LeaseExtensions extensions;
    private final Deadlines deadlines;
    private final Roster roster;

    /**
     * A run as its supervisor comes to it.
     *
     * @param worldClockMs what clocks say when {@code now} is 0
     */
    public static RunCoordinator of(
            RunBeginning beginning,
            RunPlan plan,
            RecoveryPolicy policy,
            long worldClockMs,
            long now) {
        return switch (beginning) {
            case RunBeginning.New(int epoch) -> {
                var coordinator = new RunCoordinator(plan, policy, epoch, worldClockMs, now);
                coordinator.begins();
                yield coordinator;
            }
            case RunBeginning.TakenUp taken -> resumeFrom(taken, plan, policy, worldClockMs, now);
        };
    }

    private void begins() {
        long completed = driver.completed();
        out.add(
                new Effect.Journal(
                        new JournalRecord.Began(
                                plan.runId(),
                                plan.hash(),
                                plan.ranks(),
                                ranks.epoch(),
                                completed)));
        plan.steps()
                .scaler()
                .ifPresent(
                        scaler ->
                                out.add(
                                        new Effect.Journal(
                                                new JournalRecord.LossScaled(
                                                        completed, scaler.text()))));
    }

    /**
     * Takes up a run whose supervisor is gone: in the next epoch, with all ranks that still live,
     * from what the journal says was committed.
     *
     * @param plan which must be the plan that the run began with
     * @throws IllegalArgumentException if it is not, or the run is over
     */
    private static RunCoordinator resumeFrom(
            RunBeginning.TakenUp taken,
            RunPlan plan,
            RecoveryPolicy policy,
            long worldClockMs,
            long now) {
        JournalledRun run = taken.run();
        var began = run.began();
        if (!began.planHash().equals(plan.hash())
                || began.completed() != plan.steps().completed()
                || !run.revision().equals(plan.revision())
                || run.ending().isPresent()) {
            throw new IllegalArgumentException(
                    "expected a run under way of plan %s, %s, from step %d, got %s"
                            .formatted(
                                    plan.hash(), plan.revision(), plan.steps().completed(), run));
        }
        var coordinator = new RunCoordinator(plan, policy, run.epoch(), worldClockMs, now);
        coordinator.driver.takeUp(run, now);
        coordinator.course.takeUp(taken, now);
        return coordinator;
    }

    private RunCoordinator(
            RunPlan plan, RecoveryPolicy policy, int epoch, long worldClockMs, long now) {
        this.plan = plan;
        this.ranks = new RankTable(plan);
        ranks.enter(epoch);
        this.out = new Outbox(ranks);
        this.placer = new Placer(ranks);
        var stalls = new StallWatch(plan);
        this.driver = new StepDriver(plan, ranks, out, stalls);
        var links = new Links(ranks);
        var told = new ToldLocations(ranks, links);
        this.placement = new FirstPlacement(plan, ranks, placer, told, out);
        this.absence = new Absence(policy, ranks, placer, out, driver);
        this.recovery =
                new RecoveryDriver(plan, policy, ranks, placer, links, told, out, driver, absence);
        var budget = new RecoveryBudget(policy, out, worldClockMs);
        this.causes =
                new RecoveryCauses(
                        plan, policy, ranks, placer, links, out, driver, recovery, budget);
        this.course = new RunCourse(plan, policy, ranks, out, driver, recovery, causes);
        this.losses =
                new Failures(plan, policy, ranks, placer, out, driver, absence, causes, course);
        this.extensions = new LeaseExtensions(plan, ranks, out);
        this.deadlines =
                new Deadlines(
                        plan,
                        ranks,
                        out,
                        extensions,
                        stalls,
                        placement,
                        driver,
                        recovery,
                        causes,
                        course,
                        now);
        this.roster = new Roster(ranks, placer, out, now);
    }

    /** The run's epoch. */
    public int epoch() {
        return ranks.epoch();
    }

    /** The last step that was applied everywhere. */
    long completed() {
        return driver.completed();
    }

    // ---- placing --------------------------------------------------------------------------------

    /** A node said who it is, and hosts nothing. */
    public List<Effect> onNode(NodeInfo node, long now) {
        return onNode(node, 0, List.of(), now);
    }

    /**
     * A node said who it is; saying it again changes nothing.
     *
     * @param epoch that it has heard of; it takes no rank of one before
     * @param hosted the ranks that live there
     */
    public List<Effect> onNode(NodeInfo node, int epoch, List<HostedRank> hosted, long now) {
        placer.add(node);
        if (course.is(Phase.STOPPING)) {
            return out.drain(); // whatever it hosts or has lost, the run does not come back
        }
        course.follow(causes.onHostedRanks(node, epoch, hosted, now), now);
        if (course.is(Phase.PLACING)) {
            placement.place(now);
        } else if (course.is(Phase.RECOVERING)) {
            course.follow(recovery.onNode(now), now);
        } else if (course.is(Phase.RUNNING)) {
            absence.look();
        }
        return out.drain();
    }

    /**
     * A node follows a supervisor of a higher epoch than the run's; it is to be asked again when
     * this has raised it.
     */
    public List<Effect> onHigherEpoch(NodeInfo node, int heard, long now) {
        if (heard > ranks.epoch()) {
            course.follow(causes.onHigherEpoch("node " + node.name(), heard, now), now);
        }
        return out.drain();
    }

    /** Whether this one, of all that there may be of a rank, is the run's. */
    public boolean has(HostedRank hosted, NodeInfo node) {
        return ranks.isTheOne(hosted, node);
    }

    /**
     * Whether a rank that lives there says nothing, or cannot be told to prepare: that it is hosted
     * was said, and lost, before the epoch was raised.
     */
    public boolean isSilent(NodeInfo node) {
        return ranks.on(node).stream()
                .anyMatch(
                        rank ->
                                ranks.isSilent(rank)
                                        || (recovery.isPreparing() && !ranks.listens(rank)));
    }

    /** Proof that a rank lives nowhere; of use to a supervisor that took the run up. */
    public List<Effect> onNowhere(int rank, long now) {
        if (course.is(Phase.RECOVERING)) {
            course.follow(recovery.onNowhere(rank, now), now);
        }
        return out.drain();
    }

    /** A node hosts the rank, which is opening. */
    public List<Effect> onHosted(int rank, int birthEpoch, long now) {
        if (ranks.isPlaced(rank, birthEpoch)) {
            ranks.hosted(rank, now);
            if (course.is(Phase.STOPPING)) {
                out.tell(rank, new RankCommand.Stop(ranks.epoch()));
            }
            course.follow(recovery.onHosted(rank, birthEpoch, now), now);
            course.startWhenAllOpen(now);
        }
        return out.drain();
    }

    /** A node does not take the rank. */
    public List<Effect> onHostRefused(int rank, int birthEpoch, String reason, long now) {
        if (ranks.isPlaced(rank, birthEpoch)) {
            ranks.stopped(rank);
            course.fail(reason, now);
            course.finishIfStopped();
        }
        return out.drain();
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
            case RankEvent.Failed failed -> losses.onFailed(failed, now);
            case RankEvent.Stopped _ -> losses.onStopped(rank, now);
            case RankEvent.Opened opened -> {
                ranks.opened(opened);
                onOpen(event, now);
            }
            case RankEvent.Resumed resumed -> {
                ranks.resumed(resumed);
                onOpen(event, now);
            }
            case RankEvent.Prepared prepared ->
                    ifRecovering(event, () -> recovery.onPrepared(prepared, now), now);
            case RankEvent.CheckpointDamaged damaged -> {
                boolean starts = course.is(Phase.PLACING) || course.is(Phase.RECOVERING);
                if (starts && damaged.epoch() == ranks.epoch()) {
                    course.follow(causes.onCheckpointDamaged(damaged, now), now);
                }
            }
            case RankEvent.Refused(int refuser, int heard) -> {
                if (heard >= ranks.epoch()) {
                    course.follow(causes.onHigherEpoch(ranks.name(refuser), heard, now), now);
                }
            }
            case RankEvent.LinkLost lost -> losses.onLinkLost(lost, now);
            case RankEvent.NonFinite bad ->
                    ifRunning(event, () -> new NextAction.NotFinite(bad.step(), bad.reason()), now);
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

    private void onOpen(RankEvent event, long now) {
        if (ranks.allOpen()) {
            roster.look(now); // a short run may be over before the next tick
        }
        course.startWhenAllOpen(now);
        ifRecovering(event, () -> recovery.onBack(event.rank(), now), now);
    }

    private void ifRunning(RankEvent event, Supplier<NextAction> act, long now) {
        if (course.is(Phase.RUNNING) && event.epoch() == ranks.epoch()) {
            course.follow(act.get(), now);
        }
    }

    private void ifRecovering(RankEvent event, Supplier<NextAction> act, long now) {
        if (course.is(Phase.RECOVERING) && event.epoch() == ranks.epoch()) {
            course.follow(act.get(), now);
        }
    }

    /** These ranks are to live on other nodes; no step is lost or done again. */
    public List<Effect> onMove(Set<Integer> moving, long now) {
        if (course.is(Phase.RUNNING) || course.is(Phase.RECOVERING)) {
            driver.move(moving);
        }
        return out.drain();
    }

    /**
     * The run is to follow another plan from the end of the step under way; no step is lost or done
     * again. One that is told before this one has begun takes its place.
     *
     * @param revised whose ranks are those of the plan so far, with the stages that they have
     */
    public List<Effect> onRevise(RunPlan revised, long now) {
        if (course.is(Phase.RUNNING) || course.is(Phase.RECOVERING)) {
            driver.revise(revised);
        }
        return out.drain();
    }

    /**
     * The answer to {@link Effect.AskPlan}: the plan without these ranks, if there is one.
     *
     * @param made with the stages that the ranks have
     */
    public List<Effect> onPlan(Set<Integer> absent, Optional<RunPlan> made, long now) {
        if (course.is(Phase.RECOVERING)) {
            course.follow(recovery.onPlan(absent, made, now), now);
        } else if (course.is(Phase.RUNNING)) {
            absence.onPlan(absent, made);
        }
        return out.drain();
    }

    /** A checkpoint was published, or could not be. */
    public List<Effect> onPublished(Publication publication, long now) {
        boolean idle = driver.onPublished(publication);
        if (course.is(Phase.RUNNING) && idle) {
            course.follow(driver.proceed(now), now);
        } else if (course.is(Phase.RECOVERING)) {
            course.follow(recovery.retry(now), now);
        }
        return out.drain();
    }

    /** The answer to {@link Effect.FindOlder}: the step of a checkpoint, if there is one. */
    public List<Effect> onOlder(OptionalLong step, long now) {
        driver.foundOlder(step);
        if (course.is(Phase.RECOVERING)) {
            course.follow(recovery.retry(now), now);
        }
        return out.drain();
    }

    // ---- losses ---------------------------------------------------------------------------------

    /**
     * Proof that a process of this host is gone, and with it all ranks that lived there.
     *
     * @param startedFor the rank that it was started for, if for one
     * @param how it ended
     */
    public List<Effect> onProcessDied(
            long pid, Optional<Integer> startedFor, String how, long now) {
        losses.onProcessDied(pid, startedFor, how, now);
        return out.drain();
    }

    /**
     * Proof that a process of any host is gone: a closed connection, or its removal from the
     * cluster.
     *
     * @param process as its node says
     * @param withLink whether the media driver went with it
     */
    public List<Effect> onNodeDied(String process, boolean withLink, String how, long now) {
        losses.onNodeDied(process, withLink, how, now);
        return out.drain();
    }

    /**
     * Proof that a media driver is gone, and with it every link of its host.
     *
     * @param directory of that driver; empty if all processes use it, or if nobody knows
     */
    public List<Effect> onLinkDied(String directory, String how, long now) {
        losses.onLinkDied(directory, how, now);
        return out.drain();
    }

    /**
     * Another media driver serves this directory.
     *
     * @param former directory of the driver whose place it takes; empty where all processes of the
     *     run use one
     */
    public List<Effect> onLinkRestarted(String former, String directory, long now) {
        if (course.is(Phase.RECOVERING)) {
            course.follow(recovery.onLinkRestarted(former, directory, now), now);
        }
        return out.drain();
    }

    /** Ranks that are to be started wait for room: so far it is nobody's fault. */
    public List<Effect> onNoRoom(String line, long now) {
        if (course.is(Phase.RECOVERING)) {
            course.follow(recovery.onNoRoom(line, now), now);
        } else if (course.is(Phase.PLACING)) {
            deadlines.placeLater(now);
        }
        return out.drain();
    }

    /**
     * The answer to {@link Effect.AskRoom}.
     *
     * @param asked which ranks would go where
     */
    public List<Effect> onRoom(Map<Integer, NodeInfo> asked, boolean granted, long now) {
        if (course.is(Phase.RECOVERING)) {
            course.follow(recovery.onRoom(asked, granted, now), now);
        }
        return out.drain();
    }

    /**
     * The answer to {@link Effect.ReadVitals}.
     *
     * @param signs without those that nothing is known of
     * @param own of the supervisor's process
     */
    public List<Effect> onVitals(
            Map<NodeInfo, VitalSigns> signs, Optional<VitalSigns> own, long now) {
        extensions.onVitals(signs, own, now);
        return out.drain();
    }

    // ---- the end --------------------------------------------------------------------------------

    /**
     * The user wants the run to finish its step, save, and end. One that recovers does so when it
     * is back, if there is something to save and it is known who comes back.
     */
    public List<Effect> onInterrupt(long now) {
        driver.interrupt();
        if (course.is(Phase.PLACING)
                || (course.is(Phase.RECOVERING) && recovery.hasNothingToSaveSoon())) {
            course.stopUnsaved(now);
        } else {
            course.follow(recovery.hurry(now), now);
        }
        return out.drain();
    }

    /** Time passed; to be told several times a lease. */
    public List<Effect> onTick(long now) {
        deadlines.onTick(now);
        if (course.is(Phase.RUNNING)) {
            absence.look();
        }
        roster.look(now);
        return out.drain();
    }
}
