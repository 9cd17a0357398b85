package dev.penstock.actors.cluster;

import akka.actor.AddressFromURIString;
import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.DispatcherSelector;
import akka.actor.typed.PostStop;
import akka.actor.typed.PreRestart;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import akka.actor.typed.receptionist.Receptionist;
import akka.cluster.Member;
import akka.cluster.MemberStatus;
import akka.cluster.typed.Cluster;
import akka.cluster.typed.Down;
import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepTokens;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The runs of a cluster, as a singleton on role {@code seed}: takes submissions, answers clients,
 * finds nodes, tells a {@link ClusterCoordinator} what happens and does what it answers. Each run
 * has a {@link RunManager} below it.
 */
public final class ClusterRuns extends AbstractBehavior<ClusterRuns.Command> {
    /** What clients say. */
    public sealed interface Command extends WireMessage {}

    /**
     * Train this.
     *
     * @param submission a text of the application's
     */
    public record Submit(ActorRef<TextSource.Command> submission, ActorRef<SubmitAnswer> replyTo)
            implements Command {}

    /** Which runs are there? */
    public record ListRuns(ActorRef<RunList> replyTo) implements Command {}

    /**
     * Tell me of a run; said again every few seconds for as long as it is wanted.
     *
     * @param run its name
     */
    public record Follow(String run, ActorRef<RunNews> news, ActorRef<FollowAnswer> replyTo)
            implements Command {}

    /** Finish the step, save and end. */
    public record StopRun(String run, ActorRef<StopAnswer> replyTo) implements Command {}

    /** Spread a run over all nodes that have room, from the end of its step. */
    public record RebalanceRun(String run, ActorRef<RebalanceAnswer> replyTo) implements Command {}

    /** The answer to {@link Submit}. */
    public sealed interface SubmitAnswer extends WireMessage {}

    /** There is a run of that name now. */
    public record Accepted(String run) implements SubmitAnswer {}

    /** There will be no run. */
    public record Refused(String reason) implements SubmitAnswer {}

    /**
     * The answer to {@link ListRuns}.
     *
     * @param unkept runs that have not ended and that the seed does not keep
     * @param looking whether it does not know yet what runs there are
     */
    public record RunList(
            List<RunStanding> runs, List<NodeOffer> nodes, List<Unkept> unkept, boolean looking)
            implements WireMessage {
        public RunList {
            runs = List.copyOf(runs);
            unkept = List.copyOf(unkept);
            nodes = List.copyOf(nodes);
        }
    }

    /** The answer to {@link Follow}. */
    public sealed interface FollowAnswer extends WireMessage {}

    /**
     * News come, or go on to come.
     *
     * @param tokens that the steps train on
     * @param grid of all ranks
     * @param schedule the text of the run's lowered training program
     */
    public record Following(
            String run,
            List<String> banner,
            long firstStep,
            long lastStep,
            StepTokens tokens,
            RankGrid grid,
            ActorRef<TextSource.Command> schedule)
            implements FollowAnswer {
        public Following {
            banner = List.copyOf(banner);
        }
    }

    /** Why nobody answers for a run. */
    public enum WhyUnkept {
        /** The seed does not know yet what runs there are. */
        LOOKS,
        /** The seed opens it. */
        OPENS,
        /** Somebody who is not a seed of this cluster any more has its directory. */
        HELD,
        /** The seed cannot open it. */
        BROKEN
    }

    /**
     * There may be such a run, but no seed keeps it yet.
     *
     * @param line for people: who answers, what is known, and what to do
     */
    public record Unkept(String run, WhyUnkept why, String line)
            implements FollowAnswer, StopAnswer, RebalanceAnswer {}

    /** There is no such run, but those. */
    public record NotThere(String run, List<String> others)
            implements FollowAnswer, StopAnswer, RebalanceAnswer {
        public NotThere {
            others = List.copyOf(others);
        }
    }

    /** The answer to {@link RebalanceRun}. */
    public sealed interface RebalanceAnswer extends WireMessage {}

    /**
     * What comes of it.
     *
     * @param line for people
     */
    public record Rebalancing(String run, String line) implements RebalanceAnswer {}

    /** The answer to {@link StopRun}. */
    public sealed interface StopAnswer extends WireMessage {}

    /** The run was told, or had ended. */
    public record Stopping(RunStanding standing) implements StopAnswer {}

    private record Made(Submit submit, RunSubmission.Made what) implements Command {}

    private record Found(ClusterRun run) implements Command {}

    private record AllFound(Map<String, Set<String>> kept) implements Command {}

    private record Look() implements Command {}

    private record LookOnceMore() implements Command {}

    private record RunSaid(String run, RunManager.Said what) implements Command {}

    private record Reported(String run, ClusterNode.Report report) implements Command {}

    private record Gathered(String run) implements Command {}

    private record NodesListed(Receptionist.Listing listing) implements Command {}

    private record Introduced(ClusterNode.Introduction introduction) implements Command {}

    private record LineCut(String process) implements Command {}

    private record NodeLeft(ClusterNode.Introduction node) implements Command {}

    private record Tick() implements Command {}

    /**
     * A run.
     *
     * @param manager its actor
     * @param reports told by its nodes what becomes of their shares
     */
    private record Run(
            ClusterRun made,
            ActorRef<RunManager.Command> manager,
            ActorRef<ClusterNode.Report> reports) {}

    private static final Logger LOG = LoggerFactory.getLogger(ClusterRuns.class);
    private static final Duration ASK_AGAIN = Duration.ofSeconds(1);
    private static final Duration LOOK_AGAIN = Duration.ofSeconds(3);
    private static final Duration TICK = Duration.ofSeconds(1);
    private static final Duration GATHERING = Duration.ofMillis(10);

    private final TimerScheduler<Command> timers;
    private final RunMaker maker;
    private final RunHandover handover = new RunHandover();
    private final NodeContacts nodes;
    private final ClusterCoordinator coordinator;
    private final UnkeptRuns unkept;
    private final Map<String, Run> runs = new HashMap<>();

    /** Runs that have not ended and that somebody else still has. */
    private Set<String> keptElsewhere = Set.of();

    private ClusterRuns(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            RunMaker maker,
            String host) {
        super(context);
        this.timers = timers;
        this.maker = maker;
        ActorRef<Command> self = context.getSelf();
        this.nodes =
                new NodeContacts(
                        host,
                        context.messageAdapter(ClusterNode.Introduction.class, Introduced::new),
                        process -> self.tell(new LineCut(process)));
        this.unkept =
                new UnkeptRuns(
                        Cluster.get(context.getSystem()).selfMember().address().hostPort(),
                        run -> self.tell(new Found(handover.opened(run))));
        this.coordinator = new ClusterCoordinator(members());
        coordinator.onLooking(System.nanoTime());
        timers.startSingleTimer(new LookOnceMore(), ClusterRun.LEAST_PATIENCE);
        var listings = context.messageAdapter(Receptionist.Listing.class, NodesListed::new);
        context.getSystem().receptionist().tell(Receptionist.subscribe(ClusterNode.KEY, listings));
        timers.startTimerWithFixedDelay(new Tick(), TICK);
        LOG.info("this seed keeps the cluster's runs");
        lookForAll();
    }

    /**
     * The runs of a cluster.
     *
     * @param host of this process, as nodes say it
     */
    public static Behavior<Command> create(RunMaker maker, String host) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> new ClusterRuns(context, timers, maker, host)));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Command.class, this::onCommand)
                .onSignal(PostStop.class, _ -> onPostStop())
                .onSignal(PreRestart.class, _ -> onPostStop())
                .build();
    }

    private Behavior<Command> onCommand(Command command) {
        long now = System.nanoTime();
        switch (command) {
            case Submit submit -> onSubmit(submit);
            case Made(Submit submit, RunSubmission.Made what) -> onMade(submit, what, now);
            case ListRuns(ActorRef<RunList> replyTo) ->
                    replyTo.tell(
                            new RunList(
                                    coordinator.standings(),
                                    List.copyOf(coordinator.nodes()),
                                    unkept.all(now),
                                    unkept.isLooking()));
            case Follow follow -> onFollow(follow, now);
            case StopRun stop -> onStopRun(stop, now);
            case RebalanceRun rebalance -> onRebalanceRun(rebalance, now);
            case Found(ClusterRun run) -> keep(run, now);
            case AllFound(var kept) -> onAllFound(kept, now);
            case Look _ -> look();
            case LookOnceMore _ -> lookForAll();
            case RunSaid(String run, RunManager.Said what) -> onSaid(run, what, now);
            case Reported(String run, ClusterNode.Report report) ->
                    coordinator.onReport(run, report, now);
            case Gathered(String run) -> coordinator.onGathered(run, now);
            case NodesListed(Receptionist.Listing listing) ->
                    nodes.ask(listing.getServiceInstances(ClusterNode.KEY));
            case Introduced(ClusterNode.Introduction introduction) ->
                    onIntroduced(introduction, now);
            case LineCut(String process) -> onLineCut(process, now);
            case NodeLeft(ClusterNode.Introduction node) -> onNodeLeft(node, now);
            case Tick _ -> coordinator.onTick(members(), now);
        }
        coordinator.drain().forEach(this::perform);
        return this;
    }

    // ---- clients ----------------------------------------------------------------------------

    private void onSubmit(Submit submit) {
        ActorRef<Command> self = getContext().getSelf();
        getContext()
                .spawnAnonymous(
                        RunSubmission.create(
                                text -> handover.opened(maker.make(text)),
                                submit.submission(),
                                made -> self.tell(new Made(submit, made))));
    }

    private void onMade(Submit submit, RunSubmission.Made what, long now) {
        if (what.run().isEmpty()) {
            submit.replyTo().tell(new Refused(what.refusal()));
            return;
        }
        ClusterRun made = what.run().get();
        LOG.info("run {} is in {}", made.name(), made.directory());
        submit.replyTo().tell(new Accepted(made.name()));
        keep(made, now);
    }

    private void onFollow(Follow follow, long now) {
        Run run = runs.get(follow.run());
        if (run != null) {
            run.manager().tell(new RunManager.Followed(follow));
        } else {
            follow.replyTo()
                    .tell(
                            unkept.why(follow.run(), now)
                                    .<FollowAnswer>map(known -> known)
                                    .orElseGet(() -> notThere(follow.run())));
        }
    }

    private void onStopRun(StopRun stop, long now) {
        Optional<RunStanding> standing = coordinator.standing(stop.run());
        coordinator.onStop(stop.run(), now);
        stop.replyTo()
                .tell(
                        standing.<StopAnswer>map(Stopping::new)
                                .or(() -> unkept.why(stop.run(), now))
                                .orElseGet(() -> notThere(stop.run())));
    }

    private void onRebalanceRun(RebalanceRun rebalance, long now) {
        String run = rebalance.run();
        rebalance
                .replyTo()
                .tell(
                        coordinator
                                .rebalance(run)
                                .<RebalanceAnswer>map(line -> new Rebalancing(run, line))
                                .or(() -> unkept.why(run, now))
                                .orElseGet(() -> notThere(run)));
    }

    private NotThere notThere(String run) {
        return new NotThere(run, coordinator.standings().stream().map(RunStanding::run).toList());
    }

    // ---- runs -------------------------------------------------------------------------------

    /** Looks for runs whose seed is gone: for all, then for those that somebody else still had. */
    private void look() {
        Set<String> own = Set.copyOf(runs.keySet());
        Predicate<String> names =
                unkept.isLooking() ? name -> !own.contains(name) : keptElsewhere::contains;
        Executor blocking =
                getContext().getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        getContext()
                .pipeToSelf(
                        CompletableFuture.supplyAsync(
                                () -> maker.unfinished(names, unkept), blocking),
                        (kept, error) -> {
                            if (error != null) {
                                LOG.error("runs of a seed that died cannot be looked for", error);
                            }
                            return new AllFound(kept == null ? Map.of() : kept);
                        });
    }

    /** A seed that was replaced may have begun a run before it heard that it was. */
    private void lookForAll() {
        unkept.looksForAll(System.nanoTime());
        look();
    }

    /** What somebody has may be that of a host which died, and whose lock a file server keeps. */
    private void onAllFound(Map<String, Set<String>> locked, long now) {
        Map<String, Set<String>> kept = new HashMap<>(locked);
        kept.keySet().removeAll(runs.keySet()); // submitted here in the meantime
        if (!kept.isEmpty() && !kept.keySet().equals(keptElsewhere)) {
            LOG.info("runs {} have not ended, and somebody keeps them", kept.keySet());
        }
        unkept.looked(kept.keySet(), now);
        keptElsewhere = Set.copyOf(kept.keySet());
        if (!kept.isEmpty()) {
            timers.startSingleTimer(new Look(), LOOK_AGAIN);
        }
        Set<String> processes = new HashSet<>();
        kept.values().forEach(processes::addAll);
        coordinator.onLooked(processes, now);
    }

    private void keep(ClusterRun made, long now) {
        handover.taken(made);
        String name = made.name();
        ActorRef<Command> self = getContext().getSelf();
        Behavior<ClusterNode.Report> reports =
                Behaviors.receiveMessage(
                        report -> {
                            self.tell(new Reported(name, report));
                            return Behaviors.same();
                        });
        unkept.kept(name);
        runs.put(
                name,
                new Run(
                        made,
                        getContext()
                                .spawnAnonymous(
                                        RunManager.create(
                                                made, said -> self.tell(new RunSaid(name, said)))),
                        getContext().spawnAnonymous(reports)));
        boolean sealed = RunKey.mayTravel(getContext().getSystem().settings().config());
        coordinator.keep(made, sealed ? Optional.of(RunKey.random()) : Optional.empty(), now);
    }

    private void onSaid(String run, RunManager.Said said, long now) {
        switch (said) {
            case RunManager.Committed(long step) -> coordinator.onStep(run, step, now);
            case RunManager.Recovering(int epoch, String cause) ->
                    coordinator.onRecovering(run, epoch, cause, now);
            case RunManager.Recovered(long fromStep) -> coordinator.onRecovered(run, fromStep, now);
            case RunManager.Ended(var outcome) -> coordinator.onEnded(run, outcome, now);
            case RunManager.StartRank(int rank) -> coordinator.onStartRank(run, rank, now);
            case RunManager.RankPlaced(int rank, String process) ->
                    coordinator.onPlaced(run, rank, process, now);
            case RunManager.TakeIn(var processes, var answer) ->
                    answer.complete(coordinator.takeIn(run, processes));
            case RunManager.RestartLink(var gone) -> coordinator.onRestartLink(run, gone, now);
        }
    }

    // ---- nodes ------------------------------------------------------------------------------

    /** By the number of their membership; those that are told to leave have left. */
    private Set<Long> members() {
        Set<Long> members = new HashSet<>();
        for (Member member : Cluster.get(getContext().getSystem()).state().getMembers()) {
            if (!member.status().equals(MemberStatus.down())) {
                members.add(member.uniqueAddress().longUid());
            }
        }
        return members;
    }

    private void onIntroduced(ClusterNode.Introduction node, long now) {
        Optional<ClusterNode.Introduction> former = nodes.add(node);
        if (former.filter(node::equals).isPresent()) {
            return;
        }
        former.ifPresent(other -> getContext().unwatch(other.node()));
        NodeOffer offer = node.offer();
        LOG.info("node {} offers {} bytes on {}", offer.text(), offer.memoryBytes(), offer.host());
        getContext().watchWith(node.node(), new NodeLeft(node));
        coordinator.onNode(offer, now);
    }

    /**
     * The cluster removed the member, which counts as proof of its death: the split brain resolver
     * has decided on both sides who leaves, and the orders of whoever did not hear of it are of an
     * epoch that its run has left.
     *
     * <p>Also of a node that lives: Akka answers a watch by the watched one's death while it still
     * clears away what it had for that address, whose former member was removed and has come back.
     */
    private void onNodeLeft(ClusterNode.Introduction node, long now) {
        if (nodes.has(node)) { // else another is there by now
            lost(node, "it left the cluster", now);
            getContext().scheduleOnce(ASK_AGAIN, node.node(), nodes.question());
        }
    }

    /**
     * A dead member that nobody downs counts as unreachable: after some deaths the living would be
     * the minority, and the split brain resolver would down them.
     */
    private void onLineCut(String process, long now) {
        nodes.of(process)
                .ifPresent(
                        node -> {
                            String address = node.offer().address();
                            Cluster.get(getContext().getSystem())
                                    .manager()
                                    .tell(new Down(AddressFromURIString.parse(address)));
                            lost(node, "its process ended or started anew", now);
                        });
    }

    private void lost(ClusterNode.Introduction node, String how, long now) {
        LOG.warn("node {} is gone: {}", node.offer().text(), how);
        nodes.remove(node);
        getContext().unwatch(node.node());
        coordinator.onNodeGone(node.offer().process(), how, now);
    }

    // ---- what is to be done -----------------------------------------------------------------

    private void perform(ClusterEffect effect) {
        Run run = runs.get(effect.run());
        if (run == null) {
            return;
        }
        ClusterRun made = run.made();
        String id = made.plan().runId();
        switch (effect) {
            case ClusterEffect.AskForShare(String _, String node) ->
                    nodes.tell(node, new ClusterNode.AdoptRun(id, term(), run.reports()));
            case ClusterEffect.OpenShare(String _, String node, long number, boolean starts) ->
                    nodes.tell(
                            node,
                            new ClusterNode.OpenRun(
                                    id,
                                    number,
                                    made.directory().toString(),
                                    made.plan().hash(),
                                    starts,
                                    term(),
                                    run.reports()));
            case ClusterEffect.HostRanks host ->
                    nodes.tell(
                            host.node(),
                            new ClusterNode.HostRanks(
                                    id,
                                    host.number(),
                                    host.ranks(),
                                    host.driver(),
                                    host.key(),
                                    run.reports()));
            case ClusterEffect.StartDriver(String _, String node, long number) ->
                    nodes.tell(node, new ClusterNode.StartDriver(id, number, run.reports()));
            case ClusterEffect.CloseShare(String _, String node) ->
                    nodes.tell(node, new ClusterNode.CloseRun(id, run.reports()));
            case ClusterEffect.Gather(String name) ->
                    timers.startSingleTimer("gather " + name, new Gathered(name), GATHERING);
            case ClusterEffect.Supervise _ -> run.manager().tell(new RunManager.Supervise());
            case ClusterEffect.TellSupervisor(String _, var command) ->
                    run.manager().tell(new RunManager.TellSupervisor(command));
            case ClusterEffect.TellPeople(String _, String line) ->
                    run.manager().tell(new RunManager.TellPeople(line));
            case ClusterEffect.End(String _, var outcome, Duration took) ->
                    run.manager().tell(new RunManager.End(outcome, took));
        }
    }

    /** The oldest seed has the runs, so each was a member for less long than the one before it. */
    private long term() {
        return Cluster.get(getContext().getSystem()).selfMember().upNumber();
    }

    private Behavior<Command> onPostStop() {
        nodes.close();
        handover.close();
        return this;
    }
}
