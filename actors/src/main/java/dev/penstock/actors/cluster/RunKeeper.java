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
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.schedules.ir.ScheduleText;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps one run of a cluster, from its submission to its report:
 *
 * <pre>
 *   fetch, make --refused--> stopped
 *        |
 *   WAITING --room--> OPENING --all shares built--> RUNNING --outcome--> ended
 *        ^--a node was lost---|
 * </pre>
 *
 * Stays when the run has ended, for those who ask later.
 */
final class RunKeeper extends AbstractBehavior<RunKeeper.Command> {
    /** What a keeper understands; never leaves its process. */
    sealed interface Command {}

    /** See {@link ClusterRuns.Follow}. */
    record Followed(ClusterRuns.Follow follow) implements Command {}

    /** Finish the step, save and end. */
    record Stop() implements Command {}

    /** There is room, or why not. */
    record RoomAnswered(NodeBook.Answer answer) implements Command {}

    /** A node is gone, with all that it hosted. */
    record NodeLost(NodeOffer node, String how) implements Command {}

    private record TextCame(TextFetch.Result result) implements Command {}

    private record Made(Optional<ClusterRun> run, String refusal) implements Command {}

    private record NodeReported(ClusterNode.Report report) implements Command {}

    private record NewsCame(RunNews news) implements Command {}

    private record Ended(RunOutcome outcome) implements Command {}

    private record Finished(RunOutcome outcome, String summary) implements Command {}

    private record Tick() implements Command {}

    private static final Logger LOG = LoggerFactory.getLogger(RunKeeper.class);
    private static final Duration TICK = Duration.ofSeconds(1);
    private static final int MOST_CHARS = 64 << 20;

    private final RunMaker maker;
    private final ActorRef<ClusterRuns.SubmitAnswer> submitter;
    private final Consumer<ClusterRuns.WantsRoom> wantsRoom;
    private final BiConsumer<RunStanding, ActorRef<Command>> stands;
    private final ActorRef<ClusterNode.Report> reports;
    private final Executor blocking;
    private final Optional<RunKey> key;
    private final Followers followers = new Followers();
    private final long submittedNanos = System.nanoTime();

    private @Nullable ClusterRun run;
    private @Nullable ActorRef<TextSource.Command> schedule;
    private @Nullable ActorRef<PipelineSupervisor.Command> supervisor;
    private RunState state = RunState.WAITING;
    private String detail = "";
    private long step;
    private List<NodeBook.Entry> placed = List.of();
    private final Map<String, String> driverByHost = new HashMap<>();
    private final Map<String, NodeBook.Entry> opening = new LinkedHashMap<>();
    private long openingSinceNanos;

    private RunKeeper(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            RunMaker maker,
            ClusterRuns.Submit submit,
            Consumer<ClusterRuns.WantsRoom> wantsRoom,
            BiConsumer<RunStanding, ActorRef<Command>> stands) {
        super(context);
        this.maker = maker;
        this.submitter = submit.replyTo();
        this.wantsRoom = wantsRoom;
        this.stands = stands;
        this.reports = context.messageAdapter(ClusterNode.Report.class, NodeReported::new);
        this.key =
                RunKey.mayTravel(context.getSystem().settings().config())
                        ? Optional.of(RunKey.random())
                        : Optional.empty();
        this.blocking = context.getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        context.spawn(
                TextFetch.of(
                        submit.submission(),
                        MOST_CHARS,
                        context.messageAdapter(TextFetch.Result.class, TextCame::new)),
                "submission");
        timers.startTimerWithFixedDelay(new Tick(), TICK);
    }

    /**
     * Keeps a run that was submitted.
     *
     * @param wantsRoom asks for room on nodes; answered by {@link RoomAnswered}, more than once
     *     while there is too little
     * @param stands told whenever the run's standing changes
     */
    static Behavior<Command> create(
            RunMaker maker,
            ClusterRuns.Submit submit,
            Consumer<ClusterRuns.WantsRoom> wantsRoom,
            BiConsumer<RunStanding, ActorRef<Command>> stands) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers ->
                                        new RunKeeper(
                                                context, timers, maker, submit, wantsRoom,
                                                stands)));
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
            case TextCame(TextFetch.Result result) -> onText(result);
            case Made(Optional<ClusterRun> made, String refusal) -> {
                if (made.isEmpty()) {
                    submitter.tell(new ClusterRuns.Refused(refusal));
                    return Behaviors.stopped();
                }
                onMade(made.get());
            }
            case RoomAnswered(NodeBook.Answer answer) -> onRoom(answer);
            case NodeReported(ClusterNode.Report report) -> onReport(report);
            case NodeLost(NodeOffer node, String how) -> onNodeLost(node, how);
            case NewsCame(RunNews news) -> onNews(news);
            case Followed(ClusterRuns.Follow follow) -> onFollowed(follow);
            case Stop _ -> onStop();
            case Ended(RunOutcome outcome) -> onEnded(outcome);
            case Finished(RunOutcome outcome, String summary) -> onFinished(outcome, summary);
            case Tick _ -> onTick();
        }
        return this;
    }

    // ---- submission -------------------------------------------------------------------------

    private void onText(TextFetch.Result result) {
        switch (result) {
            case TextFetch.Lost(String reason) ->
                    getContext().getSelf().tell(new Made(Optional.empty(), reason));
            case TextFetch.Fetched(String text) ->
                    getContext()
                            .pipeToSelf(
                                    CompletableFuture.supplyAsync(() -> maker.make(text), blocking),
                                    RunKeeper::made);
        }
    }

    private static Made made(@Nullable ClusterRun made, @Nullable Throwable error) {
        if (made != null) {
            return new Made(Optional.of(made), "");
        }
        Throwable cause = error == null || error.getCause() == null ? error : error.getCause();
        if (!(cause instanceof RunRefusedException)) {
            LOG.error("a submission could not be made a run", cause);
        }
        return new Made(
                Optional.empty(),
                cause == null || cause.getMessage() == null ? "" + cause : cause.getMessage());
    }

    private void onMade(ClusterRun made) {
        run = made;
        schedule =
                getContext()
                        .spawn(
                                TextSource.of(ScheduleText.print(made.plan().training())),
                                "schedule");
        step = made.plan().steps().completed();
        LOG.info("run {} is in {}", made.name(), made.directory());
        enter(RunState.WAITING, "");
        submitter.tell(new ClusterRuns.Accepted(made.name()));
        wantRoom(made);
    }

    private void wantRoom(ClusterRun made) {
        wantsRoom.accept(
                new ClusterRuns.WantsRoom(made.name(), wish(made), getContext().getSelf()));
    }

    private static NodeBook.Wish wish(ClusterRun made) {
        return new NodeBook.Wish(made.plannedBytes(), made.ranksPerNode(), made.crossesHosts());
    }

    // ---- placing and opening ----------------------------------------------------------------

    private void onRoom(NodeBook.Answer answer) {
        ClusterRun made = run;
        if (made == null || state != RunState.WAITING) {
            return;
        }
        switch (answer) {
            case NodeBook.Answer.Wanting(String line) -> {
                if (!line.equals(detail)) {
                    enter(RunState.WAITING, line);
                    followers.tell(new RunNews.Told(line));
                }
            }
            case NodeBook.Answer.Granted(List<NodeBook.Entry> nodes) -> {
                placed = nodes;
                followers.tell(new RunNews.Told(NodeBook.placed(nodes, wish(made))));
                NodeBook.betweenHosts(nodes, key.isPresent())
                        .ifPresent(line -> followers.tell(new RunNews.Told(line)));
                enter(RunState.OPENING, "");
                open(made);
            }
        }
    }

    /** The first node of each host starts the driver of its host. */
    private void open(ClusterRun made) {
        openingSinceNanos = System.nanoTime();
        driverByHost.clear();
        opening.clear();
        placed.forEach(entry -> opening.put(entry.offer().address(), entry));
        Map<String, NodeBook.Entry> starters = new HashMap<>();
        placed.forEach(entry -> starters.putIfAbsent(entry.offer().host(), entry));
        for (NodeBook.Entry entry : List.copyOf(opening.values())) {
            entry.node()
                    .tell(
                            new ClusterNode.OpenRun(
                                    made.plan().runId(),
                                    made.directory().toString(),
                                    made.plan().hash(),
                                    entry.equals(starters.get(entry.offer().host())),
                                    reports));
        }
    }

    private void onReport(ClusterNode.Report report) {
        switch (report) {
            case ClusterNode.RunOpened opened -> onOpened(opened);
            case ClusterNode.RunRefused(String node, String reason) ->
                    fail("node %s cannot take part: %s".formatted(name(node), reason));
            case ClusterNode.DriverDied(String node, String how) -> {
                if (supervisor == null) {
                    fail("the media driver of node %s died: %s".formatted(name(node), how));
                } else {
                    supervisor.tell(new PipelineSupervisor.LinkDied(how));
                }
            }
        }
    }

    private String name(String address) {
        return placed.stream()
                .map(NodeBook.Entry::offer)
                .filter(offer -> offer.address().equals(address))
                .map(NodeOffer::text)
                .findFirst()
                .orElse(address);
    }

    private void onOpened(ClusterNode.RunOpened opened) {
        NodeBook.Entry entry = opening.remove(opened.node());
        ClusterRun made = run;
        if (entry == null || made == null || state != RunState.OPENING) {
            return;
        }
        if (!opened.driverDirectory().isEmpty()) {
            driverByHost.put(entry.offer().host(), opened.driverDirectory());
        }
        if (opening.isEmpty()) {
            supervise(made);
        }
    }

    private void supervise(ClusterRun made) {
        enter(RunState.RUNNING, "");
        ActorRef<Command> self = getContext().getSelf();
        RunListener listener = made.listener(new NewsWriter(news -> self.tell(new NewsCame(news))));
        CompletableFuture<RunOutcome> outcome = new CompletableFuture<>();
        supervisor =
                getContext()
                        .spawn(
                                PipelineSupervisor.create(
                                        made.plan(), listener, made.services(), outcome),
                                "supervisor");
        getContext()
                .pipeToSelf(
                        outcome,
                        (ended, error) ->
                                new Ended(
                                        ended != null
                                                ? ended
                                                : new RunOutcome.Failed(step, "" + error)));
        hostAll(made);
    }

    private void hostAll(ClusterRun made) {
        for (NodeBook.Entry entry : placed.stream().distinct().toList()) {
            List<Integer> ranks =
                    IntStream.range(0, placed.size())
                            .filter(rank -> placed.get(rank).equals(entry))
                            .boxed()
                            .toList();
            String driver = driverByHost.getOrDefault(entry.offer().host(), "");
            entry.node().tell(new ClusterNode.HostRanks(made.plan().runId(), ranks, driver, key));
        }
    }

    private void onNodeLost(NodeOffer node, String how) {
        List<Integer> ranks =
                IntStream.range(0, placed.size())
                        .filter(rank -> placed.get(rank).offer().address().equals(node.address()))
                        .boxed()
                        .toList();
        ClusterRun made = run;
        if (made == null || ranks.isEmpty()) {
            return;
        }
        if (state == RunState.OPENING) {
            closeShares(made);
            enter(RunState.WAITING, "");
            followers.tell(new RunNews.Told("node %s is gone: %s".formatted(node.text(), how)));
            wantRoom(made);
        } else if (supervisor != null) {
            for (int rank : ranks) {
                supervisor.tell(new PipelineSupervisor.RankDied(rank, how));
            }
        }
    }

    // ---- followers --------------------------------------------------------------------------

    private void onFollowed(ClusterRuns.Follow follow) {
        ClusterRun made = run;
        ActorRef<TextSource.Command> text = schedule;
        if (made == null || text == null) {
            return; // nobody knows its name yet
        }
        follow.replyTo()
                .tell(
                        new ClusterRuns.Following(
                                made.name(),
                                made.banner(),
                                made.plan().steps().completed(),
                                made.plan().steps().last(),
                                made.tokensPerStep(),
                                text));
        followers.follow(follow.news());
    }

    private void onNews(RunNews news) {
        if (news instanceof RunNews.Step committed) {
            step = committed.step();
            enter(state, detail);
        }
        followers.tell(news);
    }

    // ---- the end ----------------------------------------------------------------------------

    private void onStop() {
        if (state.hasEnded() || run == null) {
            return;
        }
        if (supervisor == null) {
            onEnded(new RunOutcome.Interrupted(step));
        } else {
            supervisor.tell(new PipelineSupervisor.Interrupt());
        }
    }

    private void fail(String reason) {
        if (state == RunState.WAITING || state == RunState.OPENING) {
            onEnded(new RunOutcome.Failed(step, reason));
        }
    }

    private void onEnded(RunOutcome outcome) {
        ClusterRun made = run;
        if (made == null || state.hasEnded()) {
            return;
        }
        supervisor = null;
        closeShares(made);
        switch (outcome) {
            case RunOutcome.Completed(long last) -> end(RunState.COMPLETED, last, "");
            case RunOutcome.Interrupted(long last) -> end(RunState.STOPPED, last, "");
            case RunOutcome.Failed(long last, String reason) -> end(RunState.FAILED, last, reason);
        }
        Duration took = Duration.ofNanos(System.nanoTime() - submittedNanos);
        getContext()
                .pipeToSelf(
                        CompletableFuture.supplyAsync(
                                () -> {
                                    String summary = made.finish(outcome, took);
                                    made.close();
                                    return summary;
                                },
                                blocking),
                        (summary, error) ->
                                new Finished(
                                        outcome,
                                        summary != null ? summary : "no report: " + error));
    }

    private void end(RunState ended, long last, String reason) {
        step = last;
        enter(ended, reason);
    }

    private void onFinished(RunOutcome outcome, String summary) {
        followers.tell(new RunNews.Ended(outcome, summary));
    }

    private void closeShares(ClusterRun made) {
        placed.stream()
                .distinct()
                .forEach(entry -> entry.node().tell(new ClusterNode.CloseRun(made.plan().runId())));
        placed = List.of();
        opening.clear();
    }

    private void onTick() {
        followers.sweep();
        ClusterRun made = run;
        if (state == RunState.OPENING && made != null) {
            Duration limit = made.plan().timeouts().start();
            if (System.nanoTime() - openingSinceNanos > limit.toNanos()) {
                fail(
                        "expected all nodes to build their share within %d s, but %s did not; see timeouts.start"
                                .formatted(limit.toSeconds(), opening.keySet()));
            }
        }
    }

    private Behavior<Command> onPostStop() {
        ClusterRun made = run;
        if (made != null && !state.hasEnded()) {
            made.close();
        }
        return this;
    }

    private void enter(RunState next, String why) {
        state = next;
        detail = why;
        ClusterRun made = run;
        if (made != null) {
            stands.accept(
                    new RunStanding(
                            made.name(),
                            state,
                            step,
                            made.plan().steps().last(),
                            (int) placed.stream().distinct().count(),
                            (System.nanoTime() - submittedNanos) / 1_000_000,
                            made.directory().toString(),
                            detail),
                    getContext().getSelf());
        }
    }
}
