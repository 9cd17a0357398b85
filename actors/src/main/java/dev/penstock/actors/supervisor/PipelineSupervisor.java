package dev.penstock.actors.supervisor;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import akka.actor.typed.receptionist.Receptionist;
import akka.actor.typed.receptionist.ServiceKey;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.shard.RankEvent;
import dev.penstock.actors.shard.RankOrder;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepReport;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs a plan: places ranks on nodes, drives two-phase steps (all ranks report their gradients,
 * then the commit, then the optimizers), evaluations and checkpoints, watches leases and explains
 * stalls.
 *
 * <pre>
 *   PLACING --all ranks open--> RUNNING --last step, stop or failure--> STOPPING --all stopped--> outcome
 * </pre>
 */
public final class PipelineSupervisor extends AbstractBehavior<PipelineSupervisor.Command> {
    /** What a supervisor understands; never leaves its process. */
    public sealed interface Command {}

    /** Finish the step under way, save, and end. */
    public record Interrupt() implements Command {}

    /** Proof that a rank's process is gone. */
    public record RankDied(int rank, String how) implements Command {}

    /** Proof that the media driver is gone, and with it every link. */
    public record LinkDied(String how) implements Command {}

    private record NodesListed(Receptionist.Listing listing) implements Command {}

    private record Introduced(NodeActor.Introduction introduction) implements Command {}

    private record HostAnswered(NodeActor.HostAnswer answer) implements Command {}

    private record Reported(RankEvent event) implements Command {}

    private record Published(long step, long bytes, long nanos, Optional<String> failure)
            implements Command {}

    private record Tick() implements Command {}

    private enum Phase {
        PLACING,
        RUNNING,
        STOPPING
    }

    private static final Logger LOG = LoggerFactory.getLogger(PipelineSupervisor.class);
    private static final int EPOCH = 1;
    private static final Duration TICK = Duration.ofMillis(200);

    private final RunPlan plan;
    private final RunListener listener;
    private final CheckpointStore checkpoints;
    private final CompletableFuture<RunOutcome> outcome;
    private final ServiceKey<NodeActor.Command> nodes;
    private final ActorRef<RankEvent> events;
    private final ActorRef<NodeActor.HostAnswer> hostAnswers;
    private final ActorRef<NodeActor.Introduction> introductions;
    private final RankTable ranks;
    private final Placer placer;
    private final StallWatch stalls;
    private final long startedNanos = System.nanoTime();

    private Phase phase = Phase.PLACING;
    private @Nullable PassRound pass;
    private @Nullable CommitRound commit;
    private @Nullable SaveRound save;
    private @Nullable Evaluation evaluation;
    private boolean publishing;
    private boolean interrupted;
    private @Nullable String failure;
    private long passes;
    private long completed;
    private long evaluatedAfter = -1;
    private long savedAfter = -1;
    private long stepStartNanos;
    private long stoppingSinceNanos;
    private long lastTickNanos = System.nanoTime();

    private PipelineSupervisor(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            RunPlan plan,
            RunListener listener,
            CheckpointStore checkpoints,
            CompletableFuture<RunOutcome> outcome) {
        super(context);
        this.plan = plan;
        this.listener = listener;
        this.checkpoints = checkpoints;
        this.outcome = outcome;
        this.completed = plan.steps().completed();
        this.ranks = new RankTable(plan.ranks());
        this.placer = new Placer(plan.ranks());
        this.stalls = new StallWatch(plan);
        this.events = context.messageAdapter(RankEvent.class, Reported::new);
        this.hostAnswers = context.messageAdapter(NodeActor.HostAnswer.class, HostAnswered::new);
        this.introductions = context.messageAdapter(NodeActor.Introduction.class, Introduced::new);
        this.nodes = NodeActor.key(plan.runId());
        var listings = context.messageAdapter(Receptionist.Listing.class, NodesListed::new);
        context.getSystem().receptionist().tell(Receptionist.subscribe(nodes, listings));
        timers.startTimerWithFixedDelay(new Tick(), TICK);
    }

    /**
     * A supervisor of one run.
     *
     * @param outcome completed once, when every rank has stopped or the stop deadline has passed
     */
    public static Behavior<Command> create(
            RunPlan plan,
            RunListener listener,
            CheckpointStore checkpoints,
            CompletableFuture<RunOutcome> outcome) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers ->
                                        new PipelineSupervisor(
                                                context,
                                                timers,
                                                plan,
                                                listener,
                                                checkpoints,
                                                outcome)));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder().onMessage(Command.class, this::onCommand).build();
    }

    private Behavior<Command> onCommand(Command command) {
        switch (command) {
            case NodesListed(Receptionist.Listing listing) -> onNodesListed(listing);
            case Introduced(NodeActor.Introduction introduction) -> onIntroduced(introduction);
            case HostAnswered(NodeActor.HostAnswer answer) -> onHostAnswered(answer);
            case Reported(RankEvent event) -> onRankEvent(event);
            case Published published -> onPublished(published);
            case Interrupt _ -> onInterrupt();
            case RankDied(int rank, String how) -> onRankDied(rank, how);
            case LinkDied(String how) -> fail("the media driver died: " + how);
            case Tick _ -> onTick();
        }
        return outcome.isDone() ? Behaviors.stopped() : this;
    }

    // ---- placing --------------------------------------------------------------------------------

    private void onNodesListed(Receptionist.Listing listing) {
        listing.getServiceInstances(nodes)
                .forEach(node -> node.tell(new NodeActor.Introduce(introductions)));
    }

    private void onIntroduced(NodeActor.Introduction introduction) {
        if (phase != Phase.PLACING) {
            return;
        }
        for (int rank : placer.place(introduction.info())) {
            ranks.placed(rank, introduction.info());
            introduction
                    .node()
                    .tell(new NodeActor.HostRank(rank, EPOCH, plan.hash(), events, hostAnswers));
        }
    }

    private void onHostAnswered(NodeActor.HostAnswer answer) {
        switch (answer) {
            case NodeActor.Hosting(int rank, var stage) -> {
                ranks.hosted(rank, stage);
                if (phase == Phase.STOPPING) {
                    ranks.tell(rank, new RankOrder.Stop(EPOCH));
                }
            }
            case NodeActor.HostingRefused(int rank, String reason) -> {
                ranks.stopped(rank);
                fail(reason);
                finishIfStopped();
            }
        }
        startWhenAllOpen();
    }

    private void startWhenAllOpen() {
        if (phase == Phase.PLACING && ranks.allOpen()) {
            Optional<String> mixed = ranks.mixedFingerprints();
            if (mixed.isPresent()) {
                fail(mixed.get());
                return;
            }
            phase = Phase.RUNNING;
            LOG.info("run {}: {} ranks open", plan.runId(), plan.ranks());
            listener.onOpened(ranks.devices(), ranks.fingerprint());
            proceed();
        }
    }

    // ---- running
    // ----------------------------------------------------------------------------------

    private void onRankEvent(RankEvent event) {
        ranks.heardFrom(event.rank());
        switch (event) {
            case RankEvent.Opened opened -> {
                ranks.opened(opened);
                startWhenAllOpen();
            }
            case RankEvent.PassDone done -> onPassDone(done);
            case RankEvent.StepDone done -> onStepDone(done);
            case RankEvent.Saved saved -> onSaveAnswer(saved.step(), r -> r.saved(saved));
            case RankEvent.SaveFailed failed -> onSaveAnswer(failed.step(), r -> r.failed(failed));
            case RankEvent.Lease lease -> ranks.activity(lease.rank(), lease.activity());
            case RankEvent.Failed(_, String reason) -> fail(reason);
            case RankEvent.Stopped(int rank) -> onStopped(rank);
        }
    }

    /** Starts whatever is due next. */
    private void proceed() {
        var steps = plan.steps();
        if (phase != Phase.RUNNING) {
            return;
        }
        if (!interrupted && steps.evaluatesAfter(completed) && evaluatedAfter != completed) {
            evaluatedAfter = completed;
            evaluation = new Evaluation(steps.evaluationBatches());
            beginPass(StepKind.EVALUATE, 0);
        } else if (saveIsDue() && savedAfter != completed) {
            beginSave();
        } else if (interrupted || completed >= steps.last()) {
            stop();
        } else {
            stepStartNanos = System.nanoTime();
            beginPass(StepKind.TRAIN, completed + 1);
        }
    }

    private boolean saveIsDue() {
        var steps = plan.steps();
        boolean interruptedWithWork =
                interrupted && steps.checkpointEvery() > 0 && completed > steps.completed();
        return steps.savesAfter(completed) || interruptedWithWork;
    }

    private void beginPass(StepKind kind, long step) {
        passes++;
        pass = new PassRound(plan.ranks(), passes, kind, step);
        ranks.tellAll(new RankOrder.BeginPass(EPOCH, passes, kind, step));
    }

    private void onPassDone(RankEvent.PassDone done) {
        PassRound round = pass;
        if (phase != Phase.RUNNING || round == null || !round.accept(done)) {
            return;
        }
        pass = null;
        switch (round.kind()) {
            case TRAIN -> commit(round);
            case EVALUATE -> onEvaluated(round);
        }
    }

    private void commit(PassRound round) {
        GradientSummary gradients = round.gradients();
        Optional<String> broken = gradients.problem(round.step(), round.loss());
        if (broken.isPresent()) {
            fail(broken.get());
            return;
        }
        double clipFactor = gradients.clipFactor(plan.steps().clipNorm());
        commit =
                new CommitRound(
                        plan.ranks(), round.step(), round.loss(), gradients.norm(), clipFactor);
        ranks.tellAll(new RankOrder.Commit(EPOCH, round.step(), clipFactor));
    }

    private void onStepDone(RankEvent.StepDone done) {
        CommitRound round = commit;
        if (phase != Phase.RUNNING || round == null || !round.accept(done)) {
            return;
        }
        commit = null;
        completed = round.step();
        StepReport report = round.report(stepStartNanos, System.nanoTime());
        stalls.learn(report);
        listener.onStep(report);
        proceed();
    }

    private void onEvaluated(PassRound round) {
        Evaluation under = evaluation;
        if (under == null) {
            throw new IllegalStateException("an evaluation pass without an evaluation");
        }
        under.add(round.loss());
        if (interrupted && !under.isComplete()) {
            evaluation = null; // a resumed run evaluates after this step again
            proceed();
        } else if (under.isComplete()) {
            evaluation = null;
            listener.onEvaluation(completed, under.meanLoss());
            proceed();
        } else {
            beginPass(StepKind.EVALUATE, under.batchesDone());
        }
    }

    // ---- checkpoints
    // --------------------------------------------------------------------------------

    private void beginSave() {
        if (publishing) {
            return; // onPublished goes on
        }
        savedAfter = completed;
        save = new SaveRound(plan.ranks(), completed, System.nanoTime());
        ranks.tellAll(new RankOrder.Save(EPOCH, completed));
    }

    private void onSaveAnswer(long step, Function<SaveRound, Boolean> accept) {
        SaveRound round = save;
        if (phase != Phase.RUNNING
                || round == null
                || round.step() != step
                || !accept.apply(round)) {
            return;
        }
        save = null;
        if (round.failure().isPresent()) {
            checkpoints.abandon(step);
            listener.onCheckpointFailed(step, round.failure().get());
        } else {
            publish(round);
        }
        proceed();
    }

    /** Verifying and renaming goes on beside the next steps. */
    private void publish(SaveRound round) {
        publishing = true;
        CompletionStage<Void> published =
                CompletableFuture.runAsync(() -> checkpoints.publish(round.step(), round.files()));
        getContext()
                .pipeToSelf(
                        published,
                        (_, error) ->
                                new Published(
                                        round.step(),
                                        round.bytes(),
                                        System.nanoTime() - round.startNanos(),
                                        Optional.ofNullable(error).map(SaveRound::reason)));
    }

    private void onPublished(Published published) {
        publishing = false;
        published
                .failure()
                .ifPresentOrElse(
                        reason -> listener.onCheckpointFailed(published.step(), reason),
                        () ->
                                listener.onCheckpoint(
                                        published.step(), published.bytes(), published.nanos()));
        if (pass == null && commit == null && save == null && evaluation == null) {
            proceed();
        }
    }

    // ---- the end
    // --------------------------------------------------------------------------------------

    private void onInterrupt() {
        interrupted = true;
        if (phase == Phase.PLACING) {
            stop();
        }
    }

    private void onRankDied(int rank, String how) {
        ranks.died(rank);
        if (phase == Phase.STOPPING) {
            onStopped(rank);
        } else {
            fail("%s died: %s, after step %d".formatted(ranks.name(rank), how, completed));
        }
    }

    private void fail(String reason) {
        if (failure == null && phase != Phase.STOPPING) {
            failure = reason;
            LOG.error("run {} failed: {}", plan.runId(), reason);
        }
        stop();
    }

    private void stop() {
        if (phase == Phase.STOPPING) {
            return;
        }
        if (publishing && failure == null) {
            return; // onPublished goes on
        }
        phase = Phase.STOPPING;
        stoppingSinceNanos = System.nanoTime();
        ranks.tellAll(new RankOrder.Stop(EPOCH));
        finishIfStopped();
    }

    private void onStopped(int rank) {
        ranks.stopped(rank);
        if (phase != Phase.STOPPING) {
            fail("%s stopped by itself".formatted(ranks.name(rank)));
        }
        finishIfStopped();
    }

    private void finishIfStopped() {
        if (phase == Phase.STOPPING && ranks.allStopped()) {
            outcome.complete(outcomeNow());
        }
    }

    private RunOutcome outcomeNow() {
        if (failure != null) {
            return new RunOutcome.Failed(completed, failure);
        }
        return interrupted && completed < plan.steps().last()
                ? new RunOutcome.Interrupted(completed)
                : new RunOutcome.Completed(completed);
    }

    // ---- deadlines
    // --------------------------------------------------------------------------------------

    private void onTick() {
        long now = System.nanoTime();
        boolean slept = now - lastTickNanos > plan.timeouts().lease().dividedBy(2).toNanos();
        lastTickNanos = now;
        if (slept) {
            ranks.renewLeases(); // this process was suspended: renewals may still be in the mailbox
        }
        switch (phase) {
            case PLACING -> {
                if (now - startedNanos > plan.timeouts().start().toNanos()) {
                    fail(
                            "the ranks did not open within %d s: %s"
                                    .formatted(
                                            plan.timeouts().start().toSeconds(), ranks.missing()));
                }
            }
            case RUNNING -> watch(now);
            case STOPPING -> {
                if (now - stoppingSinceNanos > plan.timeouts().stop().toNanos()) {
                    LOG.warn("run {}: not stopped in time: {}", plan.runId(), ranks.missing());
                    outcome.complete(outcomeNow());
                }
            }
        }
    }

    private void watch(long now) {
        Optional<String> silent = ranks.silent(now, plan.timeouts().lease());
        if (silent.isPresent()) {
            fail(silent.get());
            return;
        }
        List<RankTable.Row> rows = ranks.rows();
        boolean roundOpen = pass != null || commit != null;
        stalls.report(rows, roundOpen, now).ifPresent(listener::onStall);
        stalls.hopeless(rows, roundOpen).ifPresent(this::fail);
    }
}
