package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.DispatcherSelector;
import akka.actor.typed.PostStop;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import dev.penstock.schedules.ir.ScheduleText;
import java.time.Duration;
import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps one run of a cluster, from its submission to its report:
 *
 * <pre>
 *   fetch, make --refused--> stopped
 *        |
 *   WAITING --room--> OPENING --all shares built--> RUNNING --outcome--> ended
 *        ^--a node was lost---|                      |  ^
 *                         a node was lost, or links  v  | room, if ranks need any; all are back
 *                                                RECOVERING
 * </pre>
 *
 * Stays when the run has ended, for those who ask later.
 */
final class RunManager extends AbstractBehavior<RunManager.Command> {
    /** What a keeper understands; never leaves its process. */
    sealed interface Command {}

    /** See {@link ClusterRuns.Follow}. */
    record Followed(ClusterRuns.Follow follow) implements Command {}

    /** Finish the step, save and end. */
    record Stop() implements Command {}

    /** Spread the run over all nodes that have room. */
    record Rebalance(ActorRef<ClusterRuns.RebalanceAnswer> replyTo) implements Command {}

    /** The ranks that would have to leave their nodes for that. */
    record Crowded(Set<Integer> ranks, ActorRef<ClusterRuns.RebalanceAnswer> replyTo)
            implements Command {}

    /** There is room, or why not. */
    record RoomAnswered(NodeInventory.Answer answer) implements Command {}

    /** A node is gone, with all that it hosted. */
    record NodeLost(NodeOffer node, String how) implements Command {}

    /** A node that there is; a run that was taken up may have a share there. */
    record NodeThere(NodeInventory.Entry node) implements Command {}

    /** Every node that there is has been asked for its share of a run that was taken up. */
    record AllAsked() implements Command {}

    private record Made(Optional<ClusterRun> run, String refusal) implements Command {}

    private record NodeReported(ClusterNode.Report report) implements Command {}

    private record NewsCame(RunNews news) implements Command {}

    /** The supervisor wants a rank started. */
    record StartRank(int rank) implements Command {}

    /** Where the supervisor has a rank hosted. */
    record RankPlaced(int rank, String node, long pid) implements Command {}

    /** Whether these processes have room for ranks whose mirrors they hold. */
    record TakeIn(Map<Integer, String> processes, CompletableFuture<Boolean> answer)
            implements Command {}

    /** The supervisor wants drivers where there are none. */
    record RestartLink() implements Command {}

    private record AskForRoom() implements Command {}

    private record Ended(RunOutcome outcome) implements Command {}

    private record Finished(RunOutcome outcome, String summary) implements Command {}

    private record Tick() implements Command {}

    private static final Logger LOG = LoggerFactory.getLogger(RunManager.class);
    private static final Duration TICK = Duration.ofSeconds(1);

    /** Ranks that died together are started together. */
    private static final Duration GATHERING = Duration.ofMillis(10);

    private final ClusterRun made;
    private final ManagedRun kept;
    private final RankSeating seating;
    private final RunTakeover adoption;
    private final ShareMonitor shares;
    private final ActorRef<TextSource.Command> schedule;

    private RunManager(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            ClusterRun made,
            long submittedNanos,
            Consumer<ClusterRuns.KeeperSays> cluster) {
        super(context);
        this.made = made;
        ActorRef<ClusterNode.Report> reports =
                context.messageAdapter(ClusterNode.Report.class, NodeReported::new);
        Optional<RunKey> key =
                RunKey.mayTravel(context.getSystem().settings().config())
                        ? Optional.of(RunKey.random())
                        : Optional.empty();
        long step =
                made.beginning() instanceof RunBeginning.TakenUp(JournalledRun known)
                        ? known.completed()
                        : made.plan().steps().completed();
        this.kept =
                new ManagedRun(
                        made,
                        new RunShares(made.plan(), made.directory(), key, reports),
                        context.getSelf(),
                        cluster,
                        submittedNanos,
                        step);
        this.seating =
                new RankSeating(kept, () -> timers.startSingleTimer(new AskForRoom(), GATHERING));
        this.adoption = new RunTakeover(kept, reports, timers, this::supervise);
        this.shares = new ShareMonitor(kept, seating, adoption, this::supervise, this::fail);
        this.schedule =
                context.spawn(
                        TextSource.of(ScheduleText.print(made.plan().training())), "schedule");
        timers.startTimerWithFixedDelay(new Tick(), TICK);
    }

    /**
     * Keeps a run that was submitted, once it is made.
     *
     * @param cluster asked for room on nodes, which is answered by {@link RoomAnswered}, more than
     *     once while there is too little; told whenever the run's standing changes
     */
    static Behavior<Command> create(
            RunMaker maker, ClusterRuns.Submit submit, Consumer<ClusterRuns.KeeperSays> cluster) {
        long now = System.nanoTime();
        return Behaviors.setup(
                context -> {
                    ActorRef<Command> self = context.getSelf();
                    context.spawn(
                            RunSubmission.create(
                                    maker,
                                    submit.submission(),
                                    made -> self.tell(new Made(made.run(), made.refusal()))),
                            "submission");
                    return Behaviors.receive(Command.class)
                            .onMessage(Made.class, made -> onMade(made, submit, now, cluster))
                            .build();
                });
    }

    private static Behavior<Command> onMade(
            Made answer,
            ClusterRuns.Submit submit,
            long submittedNanos,
            Consumer<ClusterRuns.KeeperSays> cluster) {
        if (answer.run().isEmpty()) {
            submit.replyTo().tell(new ClusterRuns.Refused(answer.refusal()));
            return Behaviors.stopped();
        }
        ClusterRun made = answer.run().get();
        return keeping(
                made,
                submittedNanos,
                cluster,
                keeper -> {
                    LOG.info("run {} is in {}", made.name(), made.directory());
                    keeper.kept.say("");
                    submit.replyTo().tell(new ClusterRuns.Accepted(made.name()));
                    keeper.kept.wantRoom(keeper.kept.wish());
                });
    }

    /**
     * Keeps a run whose keeper is gone.
     *
     * @param run with a beginning that takes it up
     * @param nodes that there are; {@link NodeThere} tells of more
     */
    static Behavior<Command> takeUp(
            ClusterRun run,
            Collection<NodeInventory.Entry> nodes,
            Consumer<ClusterRuns.KeeperSays> cluster) {
        return keeping(
                run,
                System.nanoTime(),
                cluster,
                keeper -> {
                    LOG.info("run {} is taken up after step {}", run.name(), keeper.kept.step());
                    keeper.adoption.begin(nodes);
                });
    }

    private static Behavior<Command> keeping(
            ClusterRun made,
            long submittedNanos,
            Consumer<ClusterRuns.KeeperSays> cluster,
            Consumer<RunManager> begin) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> {
                                    var keeper =
                                            new RunManager(
                                                    context, timers, made, submittedNanos, cluster);
                                    begin.accept(keeper);
                                    return keeper;
                                }));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Command.class, this::onCommand)
                .onSignal(PostStop.class, _ -> onPostStop())
                .build();
    }

    private Behavior<Command> onCommand(Command command) {
        switch (command) {
            case Made _ -> {} // before there was a keeper
            case RoomAnswered(NodeInventory.Answer answer) -> onRoom(answer);
            case NodeReported(ClusterNode.Report report) -> shares.onReport(report);
            case NodeLost(NodeOffer node, String how) -> shares.onNodeLost(node, how);
            case NodeThere(NodeInventory.Entry node) -> adoption.ask(node);
            case AllAsked _ -> onAllAsked();
            case NewsCame(RunNews news) -> onNews(news);
            case StartRank(int rank) -> seating.start(rank);
            case RankPlaced(int rank, String node, long pid) -> seating.placed(rank, node, pid);
            case TakeIn(var processes, var answer) -> seating.takeIn(processes, answer);
            case RestartLink _ -> shares.restartLink();
            case AskForRoom _ -> seating.ask();
            case Followed(ClusterRuns.Follow follow) -> onFollowed(follow);
            case Stop _ -> onStop();
            case Rebalance(var replyTo) -> onRebalance(replyTo);
            case Crowded(Set<Integer> ranks, var replyTo) -> seating.move(ranks, replyTo);
            case Ended(RunOutcome outcome) -> onEnded(outcome);
            case Finished(RunOutcome outcome, String summary) ->
                    kept.followers().tell(new RunNews.Ended(outcome, summary));
            case Tick _ -> onTick();
        }
        return this;
    }

    private void onRoom(NodeInventory.Answer answer) {
        if (!kept.hasEnded()) {
            seating.onRoom(answer);
        }
    }

    private void onAllAsked() {
        if (!kept.hasEnded()) {
            adoption.onAllAsked();
        }
    }

    private void supervise() {
        ActorRef<Command> self = getContext().getSelf();
        SupervisorServices services;
        try {
            services = made.services(new KeeperSupply(self));
        } catch (RuntimeException e) { // such as a journal on a disk that is full or gone
            LOG.warn("run {} cannot be supervised", made.name(), e);
            onEnded(new RunOutcome.Failed(kept.step(), "cannot begin: " + e.getMessage()));
            return;
        }
        kept.enter(RunState.RUNNING, "");
        RunListener listener = made.listener(new NewsWriter(news -> self.tell(new NewsCame(news))));
        CompletableFuture<RunOutcome> outcome = new CompletableFuture<>();
        kept.supervisedBy(
                getContext()
                        .spawn(
                                PipelineSupervisor.create(
                                        made.plan(), listener, services, made.beginning(), outcome),
                                "supervisor"));
        getContext()
                .pipeToSelf(
                        outcome,
                        (ended, error) ->
                                new Ended(
                                        ended != null
                                                ? ended
                                                : new RunOutcome.Failed(kept.step(), "" + error)));
        kept.shares().beginHosting();
    }

    // ---- clients ----------------------------------------------------------------------------

    private void onRebalance(ActorRef<ClusterRuns.RebalanceAnswer> replyTo) {
        if (kept.is(RunState.RUNNING)) {
            kept.wantBalance(replyTo);
        } else {
            replyTo.tell(
                    new ClusterRuns.Rebalancing(
                            made.name(),
                            "it is %s: only ranks of a run that trains move"
                                    .formatted(kept.state().name().toLowerCase(Locale.ROOT))));
        }
    }

    private void onFollowed(ClusterRuns.Follow follow) {
        follow.replyTo()
                .tell(
                        new ClusterRuns.Following(
                                made.name(),
                                made.banner(),
                                made.plan().steps().completed(),
                                made.plan().steps().last(),
                                made.tokens(),
                                made.plan().grid(),
                                schedule));
        kept.followers().follow(follow.news());
    }

    private void onNews(RunNews news) {
        kept.followers().tell(news);
        if (kept.hasEnded()) {
            return;
        }
        if (news instanceof RunNews.Step committed) {
            kept.reached(committed.step());
        } else if (news instanceof RunNews.Recovering(int epoch, String cause)) {
            kept.enter(RunState.RECOVERING, "in epoch %d: %s".formatted(epoch, cause));
        } else if (news instanceof RunNews.Recovery(RecoveryReport report)) {
            kept.enterAfter(report.fromStep(), RunState.RUNNING, "");
            seating.settled();
        }
    }

    // ---- the end ----------------------------------------------------------------------------

    private void onStop() {
        if (kept.isSupervised()) {
            kept.tellSupervisor(new PipelineSupervisor.Interrupt());
        } else {
            onEnded(new RunOutcome.Interrupted(kept.step()));
        }
    }

    private void fail(String reason) {
        if (kept.is(RunState.WAITING) || kept.is(RunState.OPENING)) {
            onEnded(new RunOutcome.Failed(kept.step(), reason));
        }
    }

    private void onEnded(RunOutcome outcome) {
        if (kept.hasEnded()) {
            return;
        }
        kept.supervisedByNobody();
        kept.shares().close();
        switch (outcome) {
            case RunOutcome.Completed(long last) -> kept.enterAfter(last, RunState.COMPLETED, "");
            case RunOutcome.Interrupted(long last) -> kept.enterAfter(last, RunState.STOPPED, "");
            case RunOutcome.Failed(long last, String reason) ->
                    kept.enterAfter(last, RunState.FAILED, reason);
        }
        Duration took = kept.age();
        getContext()
                .pipeToSelf(
                        CompletableFuture.supplyAsync(() -> finish(outcome, took), blocking()),
                        (summary, error) ->
                                new Finished(
                                        outcome,
                                        summary != null ? summary : "no report: " + error));
    }

    private Executor blocking() {
        return getContext().getSystem().dispatchers().lookup(DispatcherSelector.blocking());
    }

    private String finish(RunOutcome outcome, Duration took) {
        String summary = made.finish(outcome, took);
        made.close();
        return summary;
    }

    private void onTick() {
        kept.followers().sweep();
        Duration limit = made.plan().timeouts().start();
        if (kept.is(RunState.OPENING) && kept.timeInState().compareTo(limit) > 0) {
            fail(
                    "expected all nodes to build their share within %d s, but %s did not; see timeouts.start"
                            .formatted(limit.toSeconds(), kept.shares().opening()));
        }
        seating.tellNoRoom();
    }

    private Behavior<Command> onPostStop() {
        if (!kept.hasEnded()) {
            made.close();
        }
        return this;
    }
}
