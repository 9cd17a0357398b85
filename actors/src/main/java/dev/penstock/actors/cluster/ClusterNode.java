package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.DispatcherSelector;
import akka.actor.typed.PostStop;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.receptionist.Receptionist;
import akka.actor.typed.receptionist.ServiceKey;
import dev.penstock.actors.serialization.WireMessage;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** One per process that works: offers it to the cluster and opens its share of runs. */
public final class ClusterNode extends AbstractBehavior<ClusterNode.Command> {
    /** What a node understands. */
    public sealed interface Command extends WireMessage {}

    /**
     * Say who you are.
     *
     * @param lifeline see {@link HostWatch}; of use to nodes of {@code host} only
     */
    public record Introduce(String host, String lifeline, ActorRef<Introduction> replyTo)
            implements Command {}

    /**
     * Build your share of a run.
     *
     * @param runId as in its plan
     * @param order its number among the owner's for this run; one that was done is only answered
     * @param startsDriver whether this node starts the media driver of its host
     * @param term of the seed: that of whoever replaces it is higher, and a lower one is not heard
     * @param owner told what comes of it; the share is given up when the owner is gone for long
     */
    public record OpenRun(
            String runId,
            long order,
            String directory,
            String planHash,
            boolean startsDriver,
            long term,
            ActorRef<Report> owner)
            implements Command {}

    /**
     * Host these ranks of an open run, with the media driver in this directory.
     *
     * @param order see {@link OpenRun}
     * @param key for frames between hosts; empty where the control plane has no TLS to carry it
     * @param owner who says so; another one than the share's is not heard
     */
    public record HostRanks(
            String runId,
            long order,
            List<Integer> ranks,
            String driverDirectory,
            Optional<RunKey> key,
            ActorRef<Report> owner)
            implements Command {
        public HostRanks {
            ranks = List.copyOf(ranks);
        }
    }

    /**
     * Start another media driver of your host for an open run.
     *
     * @param order see {@link OpenRun}
     * @param owner see {@link HostRanks}
     */
    public record StartDriver(String runId, long order, ActorRef<Report> owner)
            implements Command {}

    /**
     * The owner of a run is gone, this is the new one: answered by {@link ShareKept} or {@link
     * ShareAbsent}.
     *
     * @param term see {@link OpenRun}
     */
    public record AdoptRun(String runId, long term, ActorRef<Report> owner) implements Command {}

    /**
     * Let go of a run: answered by {@link ShareAbsent} where nothing of it is left.
     *
     * @param owner see {@link HostRanks}
     */
    public record CloseRun(String runId, ActorRef<Report> owner) implements Command {}

    private record HoldAgain(String lifeline) implements Command {}

    private record RunLeft(ActorRef<NodeRun.Command> run) implements Command {}

    /**
     * The node's share of a run.
     *
     * @param order by which it was opened
     */
    private record Share(OpenRun order, ActorRef<NodeRun.Command> run) {}

    /** The answer to {@link Introduce}. */
    public record Introduction(NodeOffer offer, ActorRef<Command> node) implements WireMessage {}

    /** What a node tells the owner of a run; {@code node} is its address. */
    public sealed interface Report extends WireMessage {
        String node();
    }

    /** What came of an order. */
    public sealed interface Answer extends Report {
        /** The order's number. */
        long order();
    }

    /**
     * The share is built.
     *
     * @param driverDirectory empty unless this node was to start the driver
     */
    public record RunOpened(String node, long order, String driverDirectory) implements Answer {}

    /** This node cannot have a share. */
    public record RunRefused(String node, long order, String reason) implements Answer {}

    /** There is no share to which the order could apply: it was given up. Another may be opened. */
    public record ShareGone(String node, long order) implements Answer {}

    /** The ranks' actors are there. */
    public record RanksHosted(String node, long order) implements Answer {}

    /** The answer to {@link StartDriver}, unless that is {@link DriverRefused}. */
    public record DriverStarted(String node, long order, String driverDirectory)
            implements Answer {}

    /** No driver starts here. */
    public record DriverRefused(String node, long order, String how) implements Answer {}

    /**
     * The answer to {@link AdoptRun}: a share waited for another owner.
     *
     * @param ranks that the node was told to host
     * @param namedDrivers directories of the drivers that its ranks said they use; they do not say
     *     it again when they go over to another
     * @param driver directory of the one that it started last, or else of the one that it uses
     * @param ownsDriver whether that one lives with this node
     * @param key as it was handed to the node
     */
    public record ShareKept(
            String node,
            List<Integer> ranks,
            List<String> namedDrivers,
            String driver,
            boolean ownsDriver,
            Optional<RunKey> key)
            implements Report {
        public ShareKept {
            ranks = List.copyOf(ranks);
            namedDrivers = List.copyOf(namedDrivers);
        }
    }

    /**
     * The other answer to {@link AdoptRun}, and the one to {@link CloseRun}: nothing of it is here.
     */
    public record ShareAbsent(String node) implements Report {}

    /**
     * The media driver that this node started ended; said again and again until another is wanted.
     *
     * @param driverDirectory of that driver
     */
    public record DriverDied(String node, String driverDirectory, String how) implements Report {}

    /** Where the receptionist lists all nodes that work. */
    public static final ServiceKey<Command> KEY =
            ServiceKey.create(Command.class, "penstock-cluster-node");

    private static final Duration HOLD_AGAIN = Duration.ofSeconds(1);

    private final NodeOffer offer;
    private final RunJoiner joiner;
    private final Map<String, Share> shares = new HashMap<>();
    private HostWatch.@Nullable Line line;
    private String linedTo = "";
    private long highestTerm;

    private ClusterNode(ActorContext<Command> context, NodeOffer offer, RunJoiner joiner) {
        super(context);
        this.offer = offer;
        this.joiner = joiner;
        context.getSystem().receptionist().tell(Receptionist.register(KEY, context.getSelf()));
    }

    /** A node that builds its share of runs with {@code joiner}. */
    public static Behavior<Command> create(NodeOffer offer, RunJoiner joiner) {
        return Behaviors.setup(context -> new ClusterNode(context, offer, joiner));
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
            case Introduce introduce -> onIntroduce(introduce);
            case OpenRun open -> {
                if (isHeard(open.term())) {
                    onOpenRun(open);
                }
            }
            case HostRanks host ->
                    order(host.runId(), new NodeRun.Host(host), host.order(), host.owner());
            case StartDriver(String runId, long order, var owner) ->
                    order(runId, new NodeRun.StartDriver(order, owner), order, owner);
            case AdoptRun(String runId, long term, var owner) -> {
                if (isHeard(term)) {
                    onAdoptRun(runId, owner);
                }
            }
            case CloseRun close -> onCloseRun(close);
            case HoldAgain(String lifeline) -> hold(lifeline);
            case RunLeft(var run) -> shares.values().removeIf(share -> share.run().equals(run));
        }
        return this;
    }

    /** A seed that was replaced, and has not heard of it yet, must not take ranks from the next. */
    private boolean isHeard(long term) {
        highestTerm = Math.max(highestTerm, term);
        return term == highestTerm;
    }

    private void tell(String runId, NodeRun.Command command) {
        Share share = shares.get(runId);
        if (share != null) {
            share.run().tell(command);
        }
    }

    /** The share may have been given up, when this node did not see its owner for too long. */
    private void order(String runId, NodeRun.Command command, long number, ActorRef<Report> owner) {
        if (shares.containsKey(runId)) {
            tell(runId, command);
        } else {
            owner.tell(new ShareGone(offer.address(), number));
        }
    }

    private void onIntroduce(Introduce introduce) {
        if (introduce.host().equals(offer.host()) && !introduce.lifeline().equals(linedTo)) {
            move();
            linedTo = introduce.lifeline();
            hold(linedTo);
        }
        introduce.replyTo().tell(new Introduction(offer, getContext().getSelf()));
    }

    private void hold(String lifeline) {
        if (lifeline.isEmpty() || !lifeline.equals(linedTo)) {
            return; // the seed has none, or another has come
        }
        Optional<HostWatch.Line> held = HostWatch.hold(lifeline, offer.process());
        line = held.orElse(null);
        if (held.isEmpty()) {
            getContext().scheduleOnce(HOLD_AGAIN, getContext().getSelf(), new HoldAgain(lifeline));
        }
    }

    private void onOpenRun(OpenRun open) {
        Share share = shares.get(open.runId());
        if (share != null && share.order().equals(open)) {
            share.run().tell(new NodeRun.Again(open.order()));
            return;
        }
        tell(open.runId(), new NodeRun.Replaced());
        ActorRef<NodeRun.Command> run =
                getContext()
                        .spawnAnonymous(
                                NodeRun.create(offer, joiner, open), DispatcherSelector.blocking());
        shares.put(open.runId(), new Share(open, run));
        getContext().watchWith(run, new RunLeft(run));
    }

    private void onAdoptRun(String runId, ActorRef<Report> owner) {
        if (shares.containsKey(runId)) {
            tell(runId, new NodeRun.Adopt(owner));
        } else {
            owner.tell(new ShareAbsent(offer.address()));
        }
    }

    /** Said again and again until nothing of the run is here. */
    private void onCloseRun(CloseRun close) {
        if (shares.containsKey(close.runId())) {
            tell(close.runId(), new NodeRun.Close(close.owner()));
        } else {
            close.owner().tell(new ShareAbsent(offer.address()));
        }
    }

    private Behavior<Command> onPostStop() {
        cut();
        return this;
    }

    private void cut() {
        HostWatch.Line old = line;
        if (old != null) {
            old.close();
            line = null;
        }
    }

    /**
     * Another seed keeps the runs now. The one before it may only have stood still: a line that
     * ends without a word would tell it that this process died, and its vote would then count for
     * more than it has.
     */
    private void move() {
        HostWatch.Line old = line;
        if (old != null) {
            old.move();
            line = null;
        }
    }
}
