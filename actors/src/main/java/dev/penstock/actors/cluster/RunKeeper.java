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
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.schedules.ir.ScheduleText;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

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
final class RunKeeper extends AbstractBehavior<RunKeeper.Command> {
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
    record RoomAnswered(NodeBook.Answer answer) implements Command {}

    /** A node is gone, with all that it hosted. */
    record NodeLost(NodeOffer node, String how) implements Command {}

    /** A node that there is; a run that was taken up may have a share there. */
    record NodeThere(NodeBook.Entry node) implements Command {}

    /** Every node that there is has been asked for its share of a run that was taken up. */
    private record AllAsked() implements Command {}

    private record Made(Optional<ClusterRun> run, String refusal) implements Command {}

    private record NodeReported(ClusterNode.Report report) implements Command {}

    private record NewsCame(RunNews news) implements Command {}

    private record StartRank(int rank) implements Command {}

    private record RankPlaced(int rank, String node, long pid) implements Command {}

    private record RestartLink() implements Command {}

    private record AskForRoom() implements Command {}

    private record Ended(RunOutcome outcome) implements Command {}

    private record Finished(RunOutcome outcome, String summary) implements Command {}

    private record Tick() implements Command {}

    private static final Logger LOG = LoggerFactory.getLogger(RunKeeper.class);
    private static final Duration TICK = Duration.ofSeconds(1);

    /** By then, a seed knows all members of its cluster, and they have said what they have. */
    private static final Duration SETTLING = Duration.ofSeconds(5);

    /** For what the ranks of the shares say of themselves. */
    private static final Duration INTRODUCTIONS = Duration.ofSeconds(2);

    /** Ranks that died together are started together. */
    private static final Duration GATHERING = Duration.ofMillis(10);

    private final TimerScheduler<Command> timers;
    private final Optional<ActorRef<ClusterRuns.SubmitAnswer>> submitter;
    private final Consumer<ClusterRuns.KeeperSays> cluster;
    private final ActorRef<ClusterNode.Report> reports;
    private final Executor blocking;
    private final Followers followers = new Followers();
    private final long submittedNanos = System.nanoTime();

    private @Nullable ClusterRun run;
    private @Nullable RunShares shares;
    private @Nullable ActorRef<TextSource.Command> schedule;
    private @Nullable ActorRef<PipelineSupervisor.Command> supervisor;
    private RunState state = RunState.WAITING;
    private String detail = "";
    private long step;
    private long openingSinceNanos;
    private boolean moved;

    /** Whether nodes are asked for their shares of a run that was taken up. */
    private boolean asking;

    private final Map<String, NodeBook.Entry> asked = new HashMap<>();

    /** Drivers that were started again in an earlier owner's time, by the directory before. */
    private final Map<String, String> movedDrivers = new HashMap<>();

    /** Ranks that the supervisor wants started and that have no node yet. */
    private final Set<Integer> homeless = new TreeSet<>();

    /** Ranks whose node was told, but not seen by the supervisor yet. */
    private final Set<Integer> expected = new TreeSet<>();

    /** Ranks that were told to leave a node that may have them again. */
    private final Set<Integer> moving = new TreeSet<>();

    /** Addresses of nodes that live, but where a rank of this run fell silent or cannot start. */
    private final Set<String> avoided = new HashSet<>();

    private RunKeeper(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            Optional<ActorRef<ClusterRuns.SubmitAnswer>> submitter,
            Consumer<ClusterRuns.KeeperSays> cluster) {
        super(context);
        this.timers = timers;
        this.submitter = submitter;
        this.cluster = cluster;
        this.reports = context.messageAdapter(ClusterNode.Report.class, NodeReported::new);
        this.blocking = context.getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        timers.startTimerWithFixedDelay(new Tick(), TICK);
    }

    /**
     * Keeps a run that was submitted.
     *
     * @param cluster asked for room on nodes, which is answered by {@link RoomAnswered}, more than
     *     once while there is too little; told whenever the run's standing changes
     */
    static Behavior<Command> create(
            RunMaker maker, ClusterRuns.Submit submit, Consumer<ClusterRuns.KeeperSays> cluster) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> {
                                    var to = Optional.of(submit.replyTo());
                                    var keeper = new RunKeeper(context, timers, to, cluster);
                                    ActorRef<Command> self = context.getSelf();
                                    context.spawn(
                                            RunSubmission.create(
                                                    maker,
                                                    submit.submission(),
                                                    made ->
                                                            self.tell(
                                                                    new Made(
                                                                            made.run(),
                                                                            made.refusal()))),
                                            "submission");
                                    return keeper;
                                }));
    }

    /**
     * Keeps a run whose keeper is gone.
     *
     * @param run with a beginning that takes it up
     * @param nodes that there are; {@link NodeThere} tells of more
     */
    static Behavior<Command> takeUp(
            ClusterRun run,
            Collection<NodeBook.Entry> nodes,
            Consumer<ClusterRuns.KeeperSays> cluster) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> {
                                    var keeper =
                                            new RunKeeper(
                                                    context, timers, Optional.empty(), cluster);
                                    keeper.onTakenUp(run, nodes);
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
            case Made(Optional<ClusterRun> made, String refusal) -> {
                if (made.isEmpty()) {
                    submitter.ifPresent(to -> to.tell(new ClusterRuns.Refused(refusal)));
                    return Behaviors.stopped();
                }
                onMade(made.get());
            }
            case RoomAnswered(NodeBook.Answer answer) -> onRoom(answer);
            case NodeReported(ClusterNode.Report report) -> onReport(report);
            case NodeLost(NodeOffer node, String how) -> onNodeLost(node, how);
            case NodeThere(NodeBook.Entry node) -> onNodeThere(node);
            case AllAsked _ -> onAllAsked();
            case NewsCame(RunNews news) -> onNews(news);
            case StartRank(int rank) -> onStartRank(rank);
            case RankPlaced(int rank, String node, long pid) -> onRankPlaced(rank, node, pid);
            case RestartLink _ -> onRestartLink();
            case AskForRoom _ -> askForRoom();
            case Followed(ClusterRuns.Follow follow) -> onFollowed(follow);
            case Stop _ -> onStop();
            case Rebalance(var replyTo) -> onRebalance(replyTo);
            case Crowded(Set<Integer> ranks, var replyTo) -> onCrowded(ranks, replyTo);
            case Ended(RunOutcome outcome) -> onEnded(outcome);
            case Finished(RunOutcome outcome, String summary) -> onFinished(outcome, summary);
            case Tick _ -> onTick();
        }
        return this;
    }

    private void onMade(ClusterRun made) {
        opened(made);
        step = made.plan().steps().completed();
        LOG.info("run {} is in {}", made.name(), made.directory());
        enter(RunState.WAITING, "");
        submitter.ifPresent(to -> to.tell(new ClusterRuns.Accepted(made.name())));
        wantRoom(made, wish(made));
    }

    private void opened(ClusterRun made) {
        run = made;
        Optional<RunKey> key =
                RunKey.mayTravel(getContext().getSystem().settings().config())
                        ? Optional.of(RunKey.random())
                        : Optional.empty();
        shares = new RunShares(made.plan(), made.directory(), key, reports);
        schedule =
                getContext()
                        .spawn(
                                TextSource.of(ScheduleText.print(made.plan().training())),
                                "schedule");
    }

    // ---- taking up --------------------------------------------------------------------------

    /** Nodes keep their shares for a while: whoever has one is found, and the run goes on there. */
    private void onTakenUp(ClusterRun made, Collection<NodeBook.Entry> nodes) {
        opened(made);
        asking = true;
        if (made.beginning() instanceof RunBeginning.TakenUp(JournalledRun known)) {
            step = known.completed();
        }
        LOG.info("run {} is taken up after step {}", made.name(), step);
        enter(RunState.RECOVERING, "its seed was gone: looks for its ranks");
        followers.tell(new RunNews.Told("the run's seed was gone: another looks for its ranks"));
        timers.startSingleTimer(new AllAsked(), SETTLING);
        nodes.forEach(this::onNodeThere);
    }

    private void onNodeThere(NodeBook.Entry node) {
        ClusterRun made = run;
        if (made != null && asking) {
            asked.put(node.offer().address(), node);
            node.node().tell(new ClusterNode.AdoptRun(made.plan().runId(), reports));
        }
    }

    private void onShareKept(ClusterRun made, RunShares open, ClusterNode.ShareKept kept) {
        NodeBook.Entry entry = asked.get(kept.node());
        if (entry == null) {
            return;
        }
        open.adopt(entry, kept);
        kept.ranks().forEach(rank -> seated(made, rank, entry));
        if (!kept.firstDriver().equals(kept.driver())) {
            movedDrivers.put(kept.firstDriver(), kept.driver());
        }
        if (supervisor == null && open.homes().size() == made.plan().ranks()) {
            superviseTakenUp(made, open);
        }
    }

    private void superviseTakenUp(ClusterRun made, RunShares open) {
        supervise(made, open);
        enter(RunState.RECOVERING, "its seed was gone: its ranks are taken up");
        movedDrivers.forEach(this::linkRestarted);
        if (open.lacksDriver() && supervisor != null) {
            supervisor.tell(new PipelineSupervisor.LinkDied("its node is gone"));
        }
    }

    private void onAllAsked() {
        ClusterRun made = run;
        RunShares open = shares;
        if (made == null || open == null || state.hasEnded()) {
            return;
        }
        asking = false;
        if (supervisor == null) {
            superviseTakenUp(made, open);
            timers.startSingleTimer(new AllAsked(), INTRODUCTIONS);
        } else {
            supervisor.tell(new PipelineSupervisor.AllAsked());
        }
    }

    private void wantRoom(ClusterRun made, NodeBook.Wish wish) {
        cluster.accept(new ClusterRuns.WantsRoom(made.name(), wish, getContext().getSelf()));
    }

    private static NodeBook.Wish wish(ClusterRun made) {
        return new NodeBook.Wish(made.plannedBytes(), made.ranksPerNode(), made.crossesHosts());
    }

    // ---- placing and opening ----------------------------------------------------------------

    private void onRoom(NodeBook.Answer answer) {
        ClusterRun made = run;
        RunShares open = shares;
        if (made == null || open == null || state.hasEnded()) {
            return;
        }
        switch (answer) {
            case NodeBook.Answer.Wanting(String line) -> {
                if (!line.equals(detail)) {
                    enter(state, line);
                    followers.tell(new RunNews.Told(line));
                }
                tellNoRoom();
            }
            case NodeBook.Answer.Granted(Map<Integer, NodeBook.Entry> nodes) -> {
                if (supervisor == null) {
                    open.place(nodes);
                    openingSinceNanos = System.nanoTime();
                    tellPlaces(made, open);
                    enter(RunState.OPENING, "");
                } else {
                    onRoomForHomeless(made, open, nodes);
                }
            }
        }
    }

    /** Some may have gone elsewhere meanwhile: what was granted to them is given back. */
    private void onRoomForHomeless(
            ClusterRun made, RunShares open, Map<Integer, NodeBook.Entry> nodes) {
        Map<Integer, NodeBook.Entry> wanted = new TreeMap<>(nodes);
        wanted.keySet().retainAll(homeless);
        homeless.removeAll(wanted.keySet());
        expected.addAll(wanted.keySet());
        open.place(wanted);
        open.homes()
                .forEach(
                        (rank, home) -> {
                            if (nodes.containsKey(rank) && !wanted.containsKey(rank)) {
                                seated(made, rank, home);
                            }
                        });
        moved = true;
        enter(state, "");
    }

    private void tellNoRoom() {
        if (supervisor != null && !homeless.isEmpty()) {
            supervisor.tell(new PipelineSupervisor.NoRoom(detail));
        }
    }

    private void seated(ClusterRun made, int rank, NodeBook.Entry entry) {
        cluster.accept(
                new ClusterRuns.Seated(
                        made.name(), rank, entry.offer().address(), made.plannedBytes().get(rank)));
    }

    private void tellPlaces(ClusterRun made, RunShares open) {
        String places = PlacementText.placed(open.homes(), made.plannedBytes());
        String ways =
                PlacementText.betweenHosts(open.homes().values(), open.isSealed())
                        .map(line -> "\n        " + line)
                        .orElse("");
        followers.tell(new RunNews.Told(places + ways));
    }

    private void onReport(ClusterNode.Report report) {
        ClusterRun made = run;
        RunShares open = shares;
        if (made == null || open == null) {
            return;
        }
        if (report instanceof ClusterNode.ShareKept kept) {
            onShareKept(made, open, kept);
            return;
        }
        if (!open.isAt(report.node())) {
            return;
        }
        switch (report) {
            case ClusterNode.ShareKept _ -> {} // above
            case ClusterNode.RunOpened opened -> {
                open.opened(opened);
                if (state == RunState.OPENING && open.opening().isEmpty()) {
                    supervise(made, open);
                }
            }
            case ClusterNode.RunRefused refused -> onRefused(open, refused);
            case ClusterNode.DriverStarted(String node, String driver) -> {
                open.driverStarted(node, driver)
                        .ifPresent(moved -> linkRestarted(moved.former(), moved.directory()));
            }
            case ClusterNode.DriverDied(String node, String how) -> {
                if (supervisor == null) {
                    fail("the media driver of node %s died: %s".formatted(open.name(node), how));
                } else if (open.hasDriver(node)) {
                    open.driverDied(node);
                    supervisor.tell(new PipelineSupervisor.LinkDied(how));
                }
            }
        }
    }

    private void supervise(ClusterRun made, RunShares open) {
        enter(RunState.RUNNING, "");
        ActorRef<Command> self = getContext().getSelf();
        RunListener listener = made.listener(new NewsWriter(news -> self.tell(new NewsCame(news))));
        CompletableFuture<RunOutcome> outcome = new CompletableFuture<>();
        supervisor =
                getContext()
                        .spawn(
                                PipelineSupervisor.create(
                                        made.plan(),
                                        listener,
                                        made.services(supply()),
                                        made.beginning(),
                                        outcome),
                                "supervisor");
        getContext()
                .pipeToSelf(
                        outcome,
                        (ended, error) ->
                                new Ended(
                                        ended != null
                                                ? ended
                                                : new RunOutcome.Failed(step, "" + error)));
        open.beginHosting();
    }

    private ProcessSupply supply() {
        ActorRef<Command> self = getContext().getSelf();
        return new ProcessSupply() {
            @Override
            public void start(Optional<Integer> rank) {
                rank.ifPresent(one -> self.tell(new StartRank(one)));
            }

            @Override
            public void placed(int rank, String node, long pid) {
                self.tell(new RankPlaced(rank, node, pid));
            }

            @Override
            public void restartLink() {
                self.tell(new RestartLink());
            }
        };
    }

    // ---- losses -----------------------------------------------------------------------------

    private void onNodeLost(NodeOffer node, String how) {
        ClusterRun made = run;
        RunShares open = shares;
        String address = node.address();
        if (made == null || open == null) {
            return;
        }
        avoided.remove(address); // what comes back there is another
        if (!open.isAt(address)) {
            return;
        }
        if (supervisor == null && asking) {
            open.lost(address);
            return;
        }
        if (supervisor == null) {
            open.close();
            enter(RunState.WAITING, "");
            followers.tell(new RunNews.Told("node %s is gone: %s".formatted(node.text(), how)));
            wantRoom(made, wish(made));
            return;
        }
        boolean hadDriver = open.hasDriver(address);
        forget(open, address);
        String process = new NodeInfo(node.name(), node.pid(), Optional.empty()).process();
        boolean othersUsedIt = open.isOn(node.host()); // else nobody misses the host's driver
        supervisor.tell(new PipelineSupervisor.NodeDied(process, hadDriver && othersUsedIt, how));
        if (!open.isAnywhere()) {
            linkRestarted("", ""); // the next node starts a driver before it hosts
        }
    }

    /** Nothing of the run is at this node any more, and what was to come there needs room again. */
    private void forget(RunShares open, String address) {
        Set<Integer> lost = open.ranksAt(address);
        lost.retainAll(expected);
        open.lost(address);
        expected.removeAll(lost);
        homeless.addAll(lost);
        askSoon();
    }

    private void onRefused(RunShares open, ClusterNode.RunRefused refused) {
        String address = refused.node();
        String text =
                "node %s cannot take part: %s".formatted(open.name(address), refused.reason());
        if (supervisor == null) {
            fail(text);
            return;
        }
        followers.tell(new RunNews.Told(text));
        avoided.add(address);
        boolean hadDriver = open.hasDriver(address);
        forget(open, address);
        if (hadDriver) {
            onRestartLink();
        }
    }

    private void onStartRank(int rank) {
        RunShares open = shares;
        if (open == null || expected.contains(rank)) {
            return; // asked for in an earlier epoch, and on its way
        }
        NodeBook.Entry home = open.homes().get(rank);
        if (!moving.remove(rank) && home != null) {
            avoided.add(home.offer().address()); // it lives, and yet the rank there is no more
        }
        homeless.add(rank);
        askSoon();
    }

    private void onRebalance(ActorRef<ClusterRuns.RebalanceAnswer> replyTo) {
        ClusterRun made = run;
        if (made == null || state != RunState.RUNNING) {
            String name = made == null ? "" : made.name();
            replyTo.tell(
                    new ClusterRuns.Rebalancing(
                            name,
                            "it is %s: only ranks of a run that trains move"
                                    .formatted(state.name().toLowerCase(Locale.ROOT))));
        } else {
            cluster.accept(
                    new ClusterRuns.WantsBalance(
                            made.name(), wish(made), replyTo, getContext().getSelf()));
        }
    }

    private void onCrowded(Set<Integer> ranks, ActorRef<ClusterRuns.RebalanceAnswer> replyTo) {
        if (run == null || supervisor == null) {
            return;
        }
        String line = "its ranks are spread over all nodes that have room";
        if (!ranks.isEmpty()) {
            moving.addAll(ranks);
            supervisor.tell(new PipelineSupervisor.Move(ranks));
            line = "ranks %s go to emptier nodes when the step under way is saved".formatted(ranks);
        }
        followers.tell(new RunNews.Told("rebalance: " + line));
        replyTo.tell(new ClusterRuns.Rebalancing(run.name(), line));
    }

    private void askSoon() {
        timers.startSingleTimer(new AskForRoom(), GATHERING);
    }

    private void askForRoom() {
        ClusterRun made = run;
        if (made != null && supervisor != null && !homeless.isEmpty()) {
            wantRoom(made, wish(made).of(homeless, avoided));
        }
    }

    private void onRankPlaced(int rank, String name, long pid) {
        ClusterRun made = run;
        RunShares open = shares;
        if (made == null || open == null) {
            return;
        }
        expected.remove(rank);
        homeless.remove(rank);
        open.node(name, pid)
                .filter(entry -> !entry.equals(open.homes().get(rank)))
                .ifPresent(
                        entry -> {
                            moved = true;
                            open.moved(rank, entry);
                            seated(made, rank, entry);
                        });
    }

    private void onRestartLink() {
        if (shares != null && !shares.restartDrivers()) {
            linkRestarted("", ""); // nobody needs one
        }
    }

    private void linkRestarted(String former, String directory) {
        if (supervisor != null) {
            supervisor.tell(new PipelineSupervisor.LinkRestarted(former, directory));
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
                                made.plan().grid(),
                                text));
        followers.follow(follow.news());
    }

    private void onNews(RunNews news) {
        followers.tell(news);
        if (state.hasEnded()) {
            return;
        }
        if (news instanceof RunNews.Step committed) {
            step = committed.step();
            enter(state, detail);
        } else if (news instanceof RunNews.Recovering(int epoch, String cause)) {
            enter(RunState.RECOVERING, "in epoch %d: %s".formatted(epoch, cause));
        } else if (news instanceof RunNews.Recovery(RecoveryReport report)) {
            step = report.fromStep();
            enter(RunState.RUNNING, "");
            if (moved && run != null && shares != null) {
                moved = false;
                tellPlaces(run, shares);
            }
        }
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
        if (shares != null) {
            shares.close();
        }
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

    private void onTick() {
        followers.sweep();
        ClusterRun made = run;
        RunShares open = shares;
        if (made == null || open == null) {
            return;
        }
        if (state == RunState.OPENING) {
            Duration limit = made.plan().timeouts().start();
            if (System.nanoTime() - openingSinceNanos > limit.toNanos()) {
                fail(
                        "expected all nodes to build their share within %d s, but %s did not; see timeouts.start"
                                .formatted(limit.toSeconds(), open.opening()));
            }
        }
        tellNoRoom(); // else the supervisor takes the ranks for lost
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
            cluster.accept(
                    new ClusterRuns.Stands(
                            new RunStanding(
                                    made.name(),
                                    state,
                                    step,
                                    made.plan().steps().last(),
                                    shares == null ? 0 : shares.nodes(),
                                    (System.nanoTime() - submittedNanos) / 1_000_000,
                                    made.directory().toString(),
                                    detail),
                            getContext().getSelf()));
        }
    }
}
