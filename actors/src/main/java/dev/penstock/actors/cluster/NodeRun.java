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
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankResources;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
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

    /** Host these ranks. */
    record Host(List<Integer> ranks, String driverDirectory, Optional<RunKey> key)
            implements Command {}

    /** See {@link ClusterNode.StartDriver}. */
    record StartDriver() implements Command {}

    /** See {@link ClusterNode.AdoptRun}. */
    record Adopt(ActorRef<ClusterNode.Report> owner) implements Command {}

    private record DriverEnded(String how) implements Command {}

    /** Let go of everything. */
    record Close() implements Command {}

    private record RankLeft(Integer rank) implements Command {}

    private record GiveUp() implements Command {}

    private static final Logger LOG = LoggerFactory.getLogger(NodeRun.class);

    private final TimerScheduler<Command> timers;
    private final NodeOffer offer;
    private final ClusterNode.OpenRun order;
    private final @Nullable HostedRun run;
    private final List<Integer> ranks = new ArrayList<>();
    private ActorRef<ClusterNode.Report> owner;
    private @Nullable RankResources resources;
    private String firstDriver = "";
    private boolean ownsDriver;
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
            String driver =
                    order.startsDriver() ? opened.startDriver(onDriverDeath()).toString() : "";
            ownsDriver = order.startsDriver();
            owner.tell(new ClusterNode.RunOpened(offer.address(), driver));
            return opened;
        } catch (RuntimeException | LinkageError e) {
            LOG.warn("run {} cannot open here", order.runId(), e);
            if (opened != null) {
                opened.close();
            }
            String reason = e.getMessage() == null ? e.toString() : e.getMessage();
            owner.tell(new ClusterNode.RunRefused(offer.address(), reason));
            return null;
        }
    }

    /** From the thread that watches the driver. */
    private Consumer<String> onDriverDeath() {
        ActorRef<Command> self = getContext().getSelf();
        return how -> self.tell(new DriverEnded(how));
    }

    private Behavior<Command> onDriverEnded(String how) {
        driverEnded = Optional.of(how);
        owner.tell(new ClusterNode.DriverDied(offer.address(), how));
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
            case Host host -> onHost(host);
            case StartDriver _ -> onStartDriver();
            case Adopt(ActorRef<ClusterNode.Report> next) -> onAdopt(next);
            case DriverEnded(String how) -> onDriverEnded(how);
            case Close _ -> Behaviors.stopped();
            case RankLeft(Integer rank) -> {
                ranks.remove(rank);
                yield this;
            }
            case GiveUp _ -> onGiveUp();
        };
    }

    private Behavior<Command> onHost(Host host) {
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
                firstDriver = host.driverDirectory();
                key = host.key();
            }
            for (int rank : host.ranks()) {
                var info =
                        new NodeInfo(
                                offer.name(),
                                offer.pid(),
                                offer.uid(),
                                offer.version(),
                                Optional.of(rank),
                                false,
                                Optional.of(shared.dataPlane().address()));
                getContext()
                        .watchWith(
                                getContext().spawnAnonymous(NodeActor.create(info, shared)),
                                new RankLeft(rank));
                ranks.add(rank);
            }
        } catch (RuntimeException e) {
            LOG.warn("ranks {} of run {} cannot be hosted", host.ranks(), order.runId(), e);
            String reason = e.getMessage() == null ? e.toString() : e.getMessage();
            owner.tell(new ClusterNode.RunRefused(offer.address(), reason));
        }
        return this;
    }

    private Behavior<Command> onStartDriver() {
        HostedRun open = run;
        if (open == null) {
            return this;
        }
        try {
            String driver = open.startDriver(onDriverDeath()).toString();
            ownsDriver = true;
            driverEnded = Optional.empty();
            owner.tell(new ClusterNode.DriverStarted(offer.address(), driver));
        } catch (RuntimeException e) {
            LOG.warn("run {}: no other media driver starts here", order.runId(), e);
            return onDriverEnded(e.getMessage() == null ? e.toString() : e.getMessage());
        }
        return this;
    }

    /** Another seed keeps the run: all is handed over that the old one knew. */
    private Behavior<Command> onAdopt(ActorRef<ClusterNode.Report> next) {
        RankResources shared = resources;
        timers.cancelAll();
        getContext().unwatch(owner);
        if (run == null || shared == null) {
            next.tell(new ClusterNode.ShareAbsent(offer.address()));
            return Behaviors.stopped(); // nothing was hosted here yet
        }
        if (!next.equals(owner)) {
            LOG.info("run {} has a supervisor again", order.runId());
        }
        owner = next;
        getContext().watch(owner);
        String driver = shared.dataPlane().address().driverDirectory();
        owner.tell(
                new ClusterNode.ShareKept(
                        offer.address(), ranks, firstDriver, driver, ownsDriver, key));
        driverEnded.ifPresent(how -> owner.tell(new ClusterNode.DriverDied(offer.address(), how)));
        return this;
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
