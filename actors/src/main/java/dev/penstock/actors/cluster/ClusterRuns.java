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
import akka.actor.typed.receptionist.Receptionist;
import akka.cluster.typed.Cluster;
import akka.cluster.typed.Down;
import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepTokens;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The runs of a cluster, as a singleton on role {@code seed}: takes submissions, gives each run
 * room on nodes, and answers clients. Each run has a {@link RunManager} below it.
 */
public final class ClusterRuns extends AbstractBehavior<ClusterRuns.Command> {
    /** What clients and keepers say. */
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

    /** The answer to {@link ListRuns}. */
    public record RunList(List<RunStanding> runs, List<NodeOffer> nodes) implements WireMessage {
        public RunList {
            runs = List.copyOf(runs);
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

    /** What keepers say; never leaves its process. */
    sealed interface KeeperSays {}

    /** Which ranks should live elsewhere? Answered by {@link RunManager.Crowded}. */
    record WantsBalance(
            String run,
            NodeInventory.Wish wish,
            ActorRef<RebalanceAnswer> replyTo,
            ActorRef<RunManager.Command> keeper)
            implements KeeperSays {}

    /** A keeper asks for room. */
    record WantsRoom(String run, NodeInventory.Wish wish, ActorRef<RunManager.Command> keeper)
            implements KeeperSays {}

    /**
     * Ranks go to nodes that hold their mirrors.
     *
     * @param answer whether there is room, which they then have
     */
    record WantsSeats(
            String run,
            NodeInventory.Wish wish,
            Map<Integer, String> addresses,
            CompletableFuture<Boolean> answer)
            implements KeeperSays {}

    /** Where a run stands now. */
    record Stands(RunStanding standing, ActorRef<RunManager.Command> keeper)
            implements KeeperSays {}

    /** A rank took room that nobody had asked for. */
    record Seated(String run, NodeInventory.Wish wish, int rank, String address)
            implements KeeperSays {}

    private record KeeperSaid(KeeperSays what) implements Command {}

    private record Found(ClusterRun run) implements Command {}

    private record AllFound() implements Command {}

    private record NodesListed(Receptionist.Listing listing) implements Command {}

    private record Introduced(ClusterNode.Introduction introduction) implements Command {}

    private record LineCut(String address) implements Command {}

    private record NodeLeft(NodeInventory.Entry node) implements Command {}

    private static final Logger LOG = LoggerFactory.getLogger(ClusterRuns.class);
    private static final Duration ASK_AGAIN = Duration.ofSeconds(1);

    private final RunMaker maker;
    private final String host;
    private final HostWatch lifeline;
    private final ActorRef<ClusterNode.Introduction> introductions;
    private final NodeInventory nodes = new NodeInventory();
    private final Map<String, RunStanding> standings = new LinkedHashMap<>();
    private final Map<String, ActorRef<RunManager.Command>> keepers = new LinkedHashMap<>();
    private final Map<String, WantsRoom> waiting = new LinkedHashMap<>();

    /** Whether runs of a seed that died are looked for: until then, nobody knows what there is. */
    private boolean looking = true;

    private ClusterRuns(ActorContext<Command> context, RunMaker maker, String host) {
        super(context);
        this.maker = maker;
        this.host = host;
        ActorRef<Command> self = context.getSelf();
        try {
            this.lifeline = HostWatch.open(address -> self.tell(new LineCut(address)));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot open a local socket: " + e.getMessage(), e);
        }
        this.introductions =
                context.messageAdapter(ClusterNode.Introduction.class, Introduced::new);
        var listings = context.messageAdapter(Receptionist.Listing.class, NodesListed::new);
        context.getSystem().receptionist().tell(Receptionist.subscribe(ClusterNode.KEY, listings));
        LOG.info("this seed keeps the cluster's runs");
        var blocking = context.getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        context.pipeToSelf(
                CompletableFuture.runAsync(
                        () -> maker.unfinished(run -> self.tell(new Found(run))), blocking),
                (_, error) -> {
                    if (error != null) {
                        LOG.error("runs of a seed that died cannot be looked for", error);
                    }
                    return new AllFound();
                });
    }

    /**
     * The runs of a cluster.
     *
     * @param host of this process, as nodes say it
     */
    public static Behavior<Command> create(RunMaker maker, String host) {
        return Behaviors.setup(context -> new ClusterRuns(context, maker, host));
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
        switch (command) {
            case Submit submit -> onSubmit(submit);
            case ListRuns(ActorRef<RunList> replyTo) -> onListRuns(replyTo);
            case Follow follow -> onFollow(follow);
            case StopRun stop -> onStopRun(stop);
            case RebalanceRun rebalance -> onRebalanceRun(rebalance);
            case KeeperSaid(WantsBalance wants) ->
                    wants.keeper()
                            .tell(
                                    new RunManager.Crowded(
                                            nodes.crowded(wants.run(), wants.wish()),
                                            wants.replyTo()));
            case KeeperSaid(WantsRoom wanted) -> onRoomWanted(wanted);
            case KeeperSaid(WantsSeats(String run, var wish, var addresses, var answer)) ->
                    answer.complete(nodes.takeAt(run, wish, addresses));
            case KeeperSaid(Stands stands) -> onStands(stands);
            case KeeperSaid(Seated(String run, var wish, int rank, String address)) ->
                    nodes.seat(run, wish, rank, address);
            case Found(ClusterRun run) -> onFound(run);
            case AllFound _ -> looking = false;
            case NodesListed(Receptionist.Listing listing) -> onNodesListed(listing);
            case Introduced(ClusterNode.Introduction introduction) -> onIntroduced(introduction);
            case LineCut(String address) -> onLineCut(address);
            case NodeLeft(NodeInventory.Entry node) -> onNodeLeft(node);
        }
        return this;
    }

    // ---- clients ----------------------------------------------------------------------------

    private void onSubmit(Submit submit) {
        ActorRef<Command> self = getContext().getSelf();
        getContext()
                .spawnAnonymous(
                        RunManager.create(maker, submit, said -> self.tell(new KeeperSaid(said))));
    }

    private void onFound(ClusterRun run) {
        ActorRef<Command> self = getContext().getSelf();
        keepers.put(
                run.name(),
                getContext()
                        .spawnAnonymous(
                                RunManager.takeUp(
                                        run,
                                        nodes.all(),
                                        said -> self.tell(new KeeperSaid(said)))));
    }

    private void onListRuns(ActorRef<RunList> replyTo) {
        replyTo.tell(
                new RunList(
                        List.copyOf(standings.values()),
                        nodes.all().stream().map(NodeInventory.Entry::offer).toList()));
    }

    private void onFollow(Follow follow) {
        ActorRef<RunManager.Command> keeper = keepers.get(follow.run());
        if (keeper != null) {
            keeper.tell(new RunManager.Followed(follow));
        } else if (!looking) { // else a follower asks again
            follow.replyTo().tell(notThere(follow.run()));
        }
    }

    private void onStopRun(StopRun stop) {
        ActorRef<RunManager.Command> keeper = keepers.get(stop.run());
        RunStanding standing = standings.get(stop.run());
        if (keeper == null || standing == null) {
            stop.replyTo().tell(notThere(stop.run()));
        } else {
            keeper.tell(new RunManager.Stop());
            stop.replyTo().tell(new Stopping(standing));
        }
    }

    private void onRebalanceRun(RebalanceRun rebalance) {
        ActorRef<RunManager.Command> keeper = keepers.get(rebalance.run());
        if (keeper == null) {
            rebalance.replyTo().tell(notThere(rebalance.run()));
        } else {
            keeper.tell(new RunManager.Rebalance(rebalance.replyTo()));
        }
    }

    private NotThere notThere(String run) {
        return new NotThere(run, List.copyOf(standings.keySet()));
    }

    // ---- runs -------------------------------------------------------------------------------

    private void onStands(Stands stands) {
        RunStanding standing = stands.standing();
        standings.put(standing.run(), standing);
        keepers.put(standing.run(), stands.keeper());
        if (standing.state().hasEnded()) {
            waiting.remove(standing.run());
            nodes.release(standing.run());
            serveWaiting();
        }
    }

    private void onRoomWanted(WantsRoom wanted) {
        waiting.put(wanted.run(), wanted);
        serveWaiting();
    }

    /** In the order of submission; a small run may pass a large one that does not fit yet. */
    private void serveWaiting() {
        Set<String> served = new HashSet<>();
        for (WantsRoom wanted : waiting.values()) {
            NodeInventory.Answer answer = nodes.take(wanted.run(), wanted.wish());
            if (answer instanceof NodeInventory.Answer.Granted) {
                served.add(wanted.run());
            }
            wanted.keeper().tell(new RunManager.RoomAnswered(answer));
        }
        waiting.keySet().removeAll(served);
    }

    // ---- nodes ------------------------------------------------------------------------------

    private void onNodesListed(Receptionist.Listing listing) {
        for (ActorRef<ClusterNode.Command> node : listing.getServiceInstances(ClusterNode.KEY)) {
            node.tell(introduce());
        }
    }

    private ClusterNode.Introduce introduce() {
        return new ClusterNode.Introduce(host, lifeline.address(), introductions);
    }

    private void onIntroduced(ClusterNode.Introduction introduction) {
        NodeOffer offer = introduction.offer();
        if (nodes.at(offer.address())
                .filter(known -> known.node().equals(introduction.node()))
                .isPresent()) {
            return;
        }
        LOG.info("node {} offers {} bytes on {}", offer.text(), offer.memoryBytes(), offer.host());
        lost(offer.address(), "its process was started anew");
        var entry = new NodeInventory.Entry(offer, introduction.node());
        nodes.add(entry);
        getContext().watchWith(introduction.node(), new NodeLeft(entry));
        tellKeepers(new RunManager.NodeThere(entry));
        serveWaiting();
    }

    /**
     * Also of a node that lives: Akka answers a watch by the watched one's death while it still
     * clears away what it had for that address, whose former member was removed and has come back.
     */
    private void onNodeLeft(NodeInventory.Entry node) {
        String address = node.offer().address();
        if (nodes.at(address).filter(node::equals).isPresent()) { // else another is there by now
            lost(address, "it left the cluster");
            getContext().scheduleOnce(ASK_AGAIN, node.node(), introduce());
        }
    }

    /**
     * A dead member that nobody downs counts as unreachable: after some deaths the living would be
     * the minority, and the split brain resolver would down them.
     */
    private void onLineCut(String address) {
        if (nodes.at(address).isPresent()) {
            Cluster.get(getContext().getSystem())
                    .manager()
                    .tell(new Down(AddressFromURIString.parse(address)));
            lost(address, "its process on this host ended");
        }
    }

    private void lost(String address, String how) {
        nodes.remove(address)
                .ifPresent(
                        entry -> {
                            LOG.warn("node {} is gone: {}", entry.offer().text(), how);
                            getContext().unwatch(entry.node());
                            tellKeepers(new RunManager.NodeLost(entry.offer(), how));
                            serveWaiting();
                        });
    }

    private void tellKeepers(RunManager.Command news) {
        keepers.values().forEach(keeper -> keeper.tell(news));
    }

    private Behavior<Command> onPostStop() {
        lifeline.close();
        return this;
    }
}
