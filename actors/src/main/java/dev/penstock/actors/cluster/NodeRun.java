package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.PostStop;
import akka.actor.typed.Terminated;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankResources;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A node's share of one run. Its calls into the application block, so it lives on a dispatcher for
 * such. When the run's owner is gone, its ranks are kept for a while, in case it comes back.
 */
final class NodeRun extends AbstractBehavior<NodeRun.Command> {
    /** What it understands; never leaves its process. */
    sealed interface Command {}

    /** Answer this order again. */
    record Again(long order) implements Command {}

    /** Host these ranks. */
    record Host(ClusterNode.HostRanks order) implements Command {}

    /** See {@link ClusterNode.StartDriver}. */
    record StartDriver(long order, ActorRef<ClusterNode.Report> owner) implements Command {}

    /** See {@link ClusterNode.AdoptRun}. */
    record Adopt(ActorRef<ClusterNode.Report> owner) implements Command {}

    private record DriverEnded(String how) implements Command {}

    private record SayDriverDied() implements Command {}

    /** Let go of everything, if this is the owner. */
    record Close(ActorRef<ClusterNode.Report> owner) implements Command {}

    /** Let go of everything: the node opens the run anew. */
    record Replaced() implements Command {}

    private record RankLeft(Integer rank) implements Command {}

    private record GiveUp() implements Command {}

    private static final Logger LOG = LoggerFactory.getLogger(NodeRun.class);
    private static final Duration SAY_AGAIN = Duration.ofSeconds(10);

    private final TimerScheduler<Command> timers;
    private final NodeOffer offer;
    private final ClusterNode.OpenRun order;
    private final @Nullable HostedRun run;
    private final List<Integer> ranks = new ArrayList<>();

    /** What its ranks said of the drivers that they use, when they began. */
    private final Set<String> namedDrivers = new LinkedHashSet<>();

    /** What the owner's orders were answered with, by their numbers. */
    private final Map<Long, ClusterNode.Answer> answers = new HashMap<>();

    private ActorRef<ClusterNode.Report> owner;
    private @Nullable RankResources resources;
    private String ownDriver = "";
    private Optional<String> driverEnded = Optional.empty();
    private Optional<RunKey> key = Optional.empty();

    private NodeRun(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            NodeOffer offer,
            RunJoiner joiner,
            ClusterNode.OpenRun order) {
        super(context);
        this.timers = timers;
        this.offer = offer;
        this.order = order;
        this.owner = order.owner();
        this.run = open(joiner);
        context.watch(owner);
    }

    static Behavior<Command> create(NodeOffer offer, RunJoiner joiner, ClusterNode.OpenRun order) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> new NodeRun(context, timers, offer, joiner, order)));
    }

    /** Every way to fail is an answer: the node itself must live on. */
    private @Nullable HostedRun open(RunJoiner joiner) {
        HostedRun opened = null;
        try {
            opened = joiner.join(Path.of(order.directory()), order.runId());
            if (!opened.planHash().equals(order.planHash())) {
                throw new RunRefusedException(
                        "it built another plan: the seed's hash is %s, its own %s; run the same version everywhere"
                                .formatted(order.planHash(), opened.planHash()));
            }
            if (order.startsDriver()) {
                ownDriver = opened.startDriver(onDriverDeath()).toString();
            }
            answer(new ClusterNode.RunOpened(offer.address(), order.order(), ownDriver));
            return opened;
        } catch (RuntimeException | LinkageError e) {
            LOG.warn("run {} cannot open here", order.runId(), e);
            if (opened != null) {
                opened.close();
            }
            String reason = e.getMessage() == null ? e.toString() : e.getMessage();
            answer(new ClusterNode.RunRefused(offer.address(), order.order(), reason));
            return null;
        }
    }

    private void answer(ClusterNode.Answer answer) {
        answers.put(answer.order(), answer);
        owner.tell(answer);
    }

    /** Whether that order is the owner's and new; one that was done is answered again. */
    private boolean isNew(long number, ActorRef<ClusterNode.Report> from) {
        if (!from.equals(owner)) {
            LOG.info(
                    "run {}: an order of a supervisor that was replaced is ignored", order.runId());
            return false;
        }
        ClusterNode.Answer known = answers.get(number);
        if (known != null) {
            owner.tell(known);
        }
        return known == null;
    }

    /** From the thread that watches the driver. */
    private Consumer<String> onDriverDeath() {
        ActorRef<Command> self = getContext().getSelf();
        return how -> self.tell(new DriverEnded(how));
    }

    private Behavior<Command> onDriverEnded(String how) {
        driverEnded = Optional.of(how);
        return sayDriverDied();
    }

    /** Until another is wanted: this may be lost, and nobody else can know. */
    private Behavior<Command> sayDriverDied() {
        driverEnded.ifPresent(
                how -> {
                    owner.tell(new ClusterNode.DriverDied(offer.address(), ownDriver, how));
                    timers.startSingleTimer(new SayDriverDied(), SAY_AGAIN);
                });
        return this;
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Command.class, this::onCommand)
                .onSignal(Terminated.class, _ -> onOwnerGone())
                .onSignal(PostStop.class, _ -> onPostStop())
                .build();
    }

    private Behavior<Command> onCommand(Command command) {
        return switch (command) {
            case Again(long number) -> {
                var _ = isNew(number, owner);
                yield this;
            }
            case Host(ClusterNode.HostRanks host) ->
                    isNew(host.order(), host.owner()) ? onHost(host) : this;
            case StartDriver(long number, var from) ->
                    isNew(number, from) ? onStartDriver(number) : this;
            case Adopt(ActorRef<ClusterNode.Report> next) -> onAdopt(next);
            case DriverEnded(String how) -> onDriverEnded(how);
            case SayDriverDied _ -> sayDriverDied();
            case Close(var from) -> from.equals(owner) ? Behaviors.stopped() : this;
            case Replaced _ -> Behaviors.stopped();
            case RankLeft(Integer rank) -> {
                ranks.remove(rank);
                yield this;
            }
            case GiveUp _ -> onGiveUp();
        };
    }

    private Behavior<Command> onHost(ClusterNode.HostRanks host) {
        HostedRun open = run;
        if (open == null) {
            return this;
        }
        try {
            RankResources shared = resources;
            if (shared == null) {
                shared =
                        open.resources(
                                Path.of(host.driverDirectory()), host.key().map(RunKey::secret));
                resources = shared;
                key = host.key();
            }
            PeerAddress address = shared.dataPlane().address();
            namedDrivers.add(address.driverDirectory());
            for (int rank : host.ranks()) {
                var info =
                        new NodeInfo(
                                offer.name(),
                                offer.pid(),
                                offer.uid(),
                                offer.version(),
                                Optional.of(rank),
                                false,
                                Optional.of(address));
                getContext()
                        .watchWith(
                                getContext().spawnAnonymous(NodeActor.create(info, shared)),
                                new RankLeft(rank));
                ranks.add(rank);
            }
            answer(new ClusterNode.RanksHosted(offer.address(), host.order()));
        } catch (RuntimeException e) {
            LOG.warn("ranks {} of run {} cannot be hosted", host.ranks(), order.runId(), e);
            String reason = e.getMessage() == null ? e.toString() : e.getMessage();
            answer(new ClusterNode.RunRefused(offer.address(), host.order(), reason));
        }
        return this;
    }

    private Behavior<Command> onStartDriver(long number) {
        HostedRun open = run;
        if (open == null) {
            return this;
        }
        try {
            ownDriver = open.startDriver(onDriverDeath()).toString();
            driverEnded = Optional.empty();
            answer(new ClusterNode.DriverStarted(offer.address(), number, ownDriver));
        } catch (RuntimeException e) {
            LOG.warn("run {}: no other media driver starts here", order.runId(), e);
            String how = e.getMessage() == null ? e.toString() : e.getMessage();
            answer(new ClusterNode.DriverRefused(offer.address(), number, how));
        }
        return this;
    }

    /** Another seed keeps the run: all is handed over that the old one knew. */
    private Behavior<Command> onAdopt(ActorRef<ClusterNode.Report> next) {
        RankResources shared = resources;
        timers.cancel(new GiveUp());
        getContext().unwatch(owner);
        if (run == null || shared == null) {
            next.tell(new ClusterNode.ShareAbsent(offer.address()));
            return Behaviors.stopped(); // nothing was hosted here yet
        }
        if (!next.equals(owner)) {
            LOG.info("run {} has a supervisor again", order.runId());
            answers.clear(); // another owner's orders have numbers of their own
        }
        owner = next;
        getContext().watch(owner);
        String used = shared.dataPlane().address().driverDirectory();
        boolean owns = !ownDriver.isEmpty() && driverEnded.isEmpty();
        String driver = owns ? ownDriver : used; // ranks may have to go over to their node's own
        owner.tell(
                new ClusterNode.ShareKept(
                        offer.address(), ranks, List.copyOf(namedDrivers), driver, owns, key));
        return sayDriverDied();
    }

    private Behavior<Command> onOwnerGone() {
        if (run == null) {
            return Behaviors.stopped();
        }
        Duration patience = run.patience();
        LOG.warn(
                "run {} has lost its supervisor: its ranks here wait {} s for another",
                order.runId(),
                patience.toSeconds());
        timers.startSingleTimer(new GiveUp(), patience);
        return this;
    }

    private Behavior<Command> onGiveUp() {
        LOG.warn("run {}: no supervisor came back; its ranks here are given up", order.runId());
        return Behaviors.stopped();
    }

    /** The ranks' actors have stopped: children end before their parent. */
    private Behavior<Command> onPostStop() {
        if (run != null) {
            run.close();
        }
        return this;
    }
}
