package dev.penstock.actors.supervisor;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.DispatcherSelector;
import akka.actor.typed.PostStop;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import akka.actor.typed.receptionist.Receptionist;
import akka.actor.typed.receptionist.ServiceKey;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalTakenException;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.StageActor;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.PlanReaction;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.VitalSigns;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs a plan: tells a {@link RunCoordinator} what happens and does what it answers. Finds nodes,
 * carries orders to ranks, publishes checkpoints; decides nothing.
 */
public final class PipelineSupervisor extends AbstractBehavior<PipelineSupervisor.Command> {
    /** What a supervisor understands; never leaves its process. */
    public sealed interface Command {}

    /** Finish the step under way, save, and end. */
    public record Interrupt() implements Command {}

    /**
     * Proof that a process of this host is gone.
     *
     * @param startedFor the rank that it was started for, if for one
     */
    public record ProcessDied(long pid, Optional<Integer> startedFor, String how)
            implements Command {}

    /**
     * Proof that a process of any host is gone, with every rank that lives there: a closed
     * connection, or its removal from the cluster.
     *
     * @param process as its {@link NodeInfo#process} says
     * @param withLink whether the media driver went with it
     */
    public record NodeDied(String process, boolean withLink, String how) implements Command {}

    /**
     * There is no room yet for ranks that are to be started: a line that says what is waited for.
     */
    public record NoRoom(String line) implements Command {}

    /** Ranks are sent to this process: it lives, even if its death was told before. */
    public record NodeBack(String process) implements Command {}

    /** Proof that these ranks live nowhere; of use to a supervisor that took the run up. */
    public record Nowhere(Set<Integer> ranks) implements Command {
        public Nowhere {
            ranks = Set.copyOf(ranks);
        }
    }

    /**
     * Proof that a media driver is gone, and with it every link of its host.
     *
     * @param directory of that driver; empty if all processes use it, or if nobody knows
     */
    public record LinkDied(String directory, String how) implements Command {
        /** The one that all processes use, or nobody knows which. */
        public LinkDied(String how) {
            this("", how);
        }
    }

    /**
     * Another media driver serves this directory.
     *
     * @param former directory of the driver whose place it takes; empty where all processes of the
     *     run use one
     */
    public record LinkRestarted(String former, String directory) implements Command {}

    /** These ranks are to live on other nodes, from the end of the step under way. */
    public record Move(Set<Integer> ranks) implements Command {
        public Move {
            ranks = Set.copyOf(ranks);
        }
    }

    /** The run is to follow this plan, from the end of the step under way. */
    public record Revise(RunPlan revised) implements Command {}

    private record NodesListed(Receptionist.Listing listing) implements Command {}

    private record Introduced(NodeActor.Introduction introduction) implements Command {}

    private record HostAnswered(NodeActor.HostAnswer answer) implements Command {}

    private record Reported(RankEvent event) implements Command {}

    private record Published(Publication publication) implements Command {}

    private record OlderFound(OptionalLong step) implements Command {}

    private record RoomAnswered(Map<Integer, NodeInfo> asked, boolean granted) implements Command {}

    private record PlanMade(Set<Integer> absent, Optional<RunPlan> plan) implements Command {}

    private record VitalsRead(Map<NodeInfo, VitalSigns> signs, Optional<VitalSigns> own)
            implements Command {}

    /** The listener and whoever waits for the outcome know how the run ended. */
    private record Told() implements Command {}

    private record ListenerFailed(RuntimeException why) implements Command {}

    private record Tick() implements Command {}

    /** A rank where it was hosted last, and in which epoch. */
    private record Stage(int epoch, ActorRef<StageActor.Command> ref) {}

    private static final Logger LOG = LoggerFactory.getLogger(PipelineSupervisor.class);
    private static final Duration TICK = Duration.ofMillis(200);
    private static final Duration ASK_AGAIN = Duration.ofSeconds(2);

    /**
     * Name of the supervisor's child that hears what nodes say of themselves. One that was started
     * by the supervisor's process knows it by this name, and says so without being asked.
     */
    public static final String INTRODUCTIONS = "introductions";

    private final RunPlan plan;
    private final ListenerThread listener;
    private final SupervisorServices services;
    private final CompletableFuture<RunOutcome> outcome;
    private final ServiceKey<NodeActor.Command> key;
    private final ActorRef<RankEvent> events;
    private final ActorRef<NodeActor.HostAnswer> hostAnswers;
    private final ActorRef<NodeActor.Introduction> introductions;
    private final Map<NodeInfo, ActorRef<NodeActor.Command>> nodes = new HashMap<>();
    private final Set<String> dead = new HashSet<>();
    private final Set<ActorRef<NodeActor.Command>> left = new HashSet<>();
    private Set<ActorRef<NodeActor.Command>> listed = Set.of();
    private long askedNanos;
    private @Nullable RunOutcome ended;

    /** How it will have ended when everything is done that a command asks for. */
    private @Nullable RunOutcome finishing;

    private final Map<Integer, Stage> stages = new HashMap<>();
    private final RunCoordinator coordinator;

    private PipelineSupervisor(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            RunPlan plan,
            RunListener listener,
            SupervisorServices services,
            RunBeginning beginning,
            CompletableFuture<RunOutcome> outcome) {
        super(context);
        this.plan = plan;
        ActorRef<Command> self = context.getSelf();
        this.listener = new ListenerThread(listener, e -> self.tell(new ListenerFailed(e)));
        this.services = services;
        this.outcome = outcome;
        long now = System.nanoTime();
        long worldClockMs = System.currentTimeMillis() - TimeUnit.NANOSECONDS.toMillis(now);
        this.coordinator = RunCoordinator.of(beginning, plan, services.policy(), worldClockMs, now);
        this.key = NodeActor.key(plan.runId());
        this.events = context.messageAdapter(RankEvent.class, Reported::new);
        this.hostAnswers = context.messageAdapter(NodeActor.HostAnswer.class, HostAnswered::new);
        this.introductions = context.spawn(introductions(context.getSelf()), INTRODUCTIONS);
        var listings = context.messageAdapter(Receptionist.Listing.class, NodesListed::new);
        context.getSystem().receptionist().tell(Receptionist.subscribe(key, listings));
        timers.startTimerWithFixedDelay(new Tick(), TICK);
    }

    /** A supervisor of a run in which every failure is the end. */
    public static Behavior<Command> create(
            RunPlan plan,
            RunListener listener,
            CheckpointStore checkpoints,
            CompletableFuture<RunOutcome> outcome) {
        var services = SupervisorServices.plain(checkpoints);
        return create(plan, listener, services, RunBeginning.FIRST, outcome);
    }

    /** A supervisor of a run that nobody has begun. */
    public static Behavior<Command> create(
            RunPlan plan,
            RunListener listener,
            SupervisorServices services,
            CompletableFuture<RunOutcome> outcome) {
        return create(plan, listener, services, RunBeginning.FIRST, outcome);
    }

    /**
     * A supervisor of one run.
     *
     * @param listener told on a thread of its own
     * @param outcome completed once, when every rank has stopped or the stop deadline has passed,
     *     and the listener knows everything or has not moved on for as long
     */
    public static Behavior<Command> create(
            RunPlan plan,
            RunListener listener,
            SupervisorServices services,
            RunBeginning beginning,
            CompletableFuture<RunOutcome> outcome) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> {
                                    try {
                                        return new PipelineSupervisor(
                                                context, timers, plan, listener, services,
                                                beginning, outcome);
                                    } catch (RuntimeException e) {
                                        LOG.error("run {} has no supervisor", plan.runId(), e);
                                        outcome.complete(cannotBegin(beginning, plan, e));
                                        return Behaviors.stopped();
                                    }
                                }));
    }

    private static RunOutcome cannotBegin(
            RunBeginning beginning, RunPlan plan, RuntimeException reason) {
        long step =
                beginning instanceof RunBeginning.TakenUp taken
                        ? taken.run().completed()
                        : plan.steps().completed();
        return new RunOutcome.Failed(step, "no supervisor can begin: " + reason.getMessage());
    }

    private static Behavior<NodeActor.Introduction> introductions(ActorRef<Command> supervisor) {
        return Behaviors.receiveMessage(
                introduction -> {
                    supervisor.tell(new Introduced(introduction));
                    return Behaviors.same();
                });
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Command.class, this::onCommand)
                .onSignal(PostStop.class, _ -> onPostStop())
                .build();
    }

    private Behavior<Command> onCommand(Command command) {
        RunOutcome how = ended;
        if (how != null) {
            return afterTheEnd(command, how, System.nanoTime());
        }
        try {
            for (Effect effect : effectsOf(command, System.nanoTime())) {
                perform(effect);
            }
        } catch (JournalTakenException e) { // nothing of what follows the record may be done
            LOG.error("run {}: {}", plan.runId(), e.getMessage());
            finish(new RunOutcome.Failed(coordinator.completed(), String.valueOf(e.getMessage())));
        } catch (RuntimeException e) { // else nobody would ever hear of the run again
            LOG.error("run {}: the supervisor failed", plan.runId(), e);
            finish(
                    new RunOutcome.Failed(
                            coordinator.completed(),
                            "the supervisor failed, which is a bug of Penstock: " + e));
        }
        RunOutcome last = finishing;
        if (last != null) {
            end(last);
        }
        return this;
    }

    /**
     * The run is over when the command is: what else the listener is told of it, whether before or
     * after these words, it hears before the end.
     */
    private void finish(RunOutcome how) {
        finishing = finishing == null ? how : finishing;
    }

    /** It stops when the outcome is known: one that stops before that is taken for dead. */
    private void end(RunOutcome how) {
        if (ended == null) {
            ended = how;
            ActorRef<Command> self = getContext().getSelf();
            listener.end(
                    () -> {
                        outcome.complete(how);
                        self.tell(new Told());
                    });
        }
    }

    /** A listener that does not move on, as on a disk that does not answer, is given up. */
    private Behavior<Command> afterTheEnd(Command command, RunOutcome how, long now) {
        if (command instanceof Told) {
            return Behaviors.stopped();
        }
        Duration patience = plan.timeouts().stop();
        if (listener.hasStoodStill(patience, now)) {
            LOG.error(
                    "run {} is over, but its metrics and events have not been written on for {} s:"
                            + " the last {} of them are given up (does the disk answer?)",
                    plan.runId(),
                    patience.toSeconds(),
                    listener.behind());
            outcome.complete(how);
            return Behaviors.stopped();
        }
        return this;
    }

    private Behavior<Command> onPostStop() {
        if (ended == null) {
            listener.end(() -> {});
        }
        return this;
    }

    // ---- what happened --------------------------------------------------------------------------

    private List<Effect> effectsOf(Command command, long now) {
        return switch (command) {
            case NodesListed(Receptionist.Listing listing) -> onNodesListed(listing);
            case Introduced(NodeActor.Introduction introduction) -> onNode(introduction, now);
            case HostAnswered(NodeActor.Hosting(int rank, int epoch, var stage)) -> {
                stages.merge(
                        rank,
                        new Stage(epoch, stage),
                        (old, young) -> young.epoch() > old.epoch() ? young : old);
                yield coordinator.onHosted(rank, epoch, now);
            }
            case HostAnswered(NodeActor.HostingRefused(int rank, int epoch, String reason)) ->
                    coordinator.onHostRefused(rank, epoch, reason, now);
            case Reported(RankEvent event) -> coordinator.onRankEvent(event, now);
            case Published(Publication publication) -> coordinator.onPublished(publication, now);
            case OlderFound(OptionalLong step) -> coordinator.onOlder(step, now);
            case Interrupt _ -> coordinator.onInterrupt(now);
            case ProcessDied(long pid, var startedFor, String how) -> {
                nodes.keySet().removeIf(node -> node.pid() == pid);
                yield coordinator.onProcessDied(pid, startedFor, how, now);
            }
            case NodeDied(String process, boolean withLink, String how) -> {
                dead.add(process);
                yield coordinator.onNodeDied(process, withLink, how, now);
            }
            case NodeBack(String process) -> {
                dead.remove(process);
                yield List.of();
            }
            case Nowhere(Set<Integer> ranks) -> onNowhere(ranks, now);
            case RoomAnswered(var asked, boolean granted) ->
                    coordinator.onRoom(asked, granted, now);
            case PlanMade(var absent, var made) -> coordinator.onPlan(absent, made, now);
            case VitalsRead(var signs, var own) -> coordinator.onVitals(signs, own, now);
            case NoRoom(String line) -> coordinator.onNoRoom(line, now);
            case LinkDied(String directory, String how) ->
                    coordinator.onLinkDied(directory, how, now);
            case LinkRestarted(String former, String directory) ->
                    coordinator.onLinkRestarted(former, directory, now);
            case Move(Set<Integer> ranks) -> coordinator.onMove(ranks, now);
            case Revise(RunPlan revised) -> coordinator.onRevise(revised, now);
            case ListenerFailed(RuntimeException why) -> throw why;
            case Told _ -> List.of();
            case Tick _ -> {
                askAgain(now);
                yield coordinator.onTick(now);
            }
        };
    }

    private List<Effect> onNowhere(Set<Integer> ranks, long now) {
        List<Effect> effects = new ArrayList<>();
        ranks.forEach(rank -> effects.addAll(coordinator.onNowhere(rank, now)));
        return effects;
    }

    private List<Effect> onNodesListed(Receptionist.Listing listing) {
        listed = Set.copyOf(listing.getServiceInstances(key));
        listed.forEach(this::ask);
        return List.of();
    }

    private void ask(ActorRef<NodeActor.Command> node) {
        node.tell(new NodeActor.Introduce(coordinator.epoch(), introductions));
    }

    /**
     * Those that have not said who they are, since question or answer may have been lost; and where
     * a rank is silent, since the word that it ended may have been.
     */
    private void askAgain(long now) {
        if (now - askedNanos > ASK_AGAIN.toNanos()) {
            askedNanos = now;
            listed.stream()
                    .filter(node -> !nodes.containsValue(node) && !left.contains(node))
                    .forEach(this::ask);
            nodes.forEach(
                    (info, node) -> {
                        if (coordinator.isSilent(info)) {
                            ask(node);
                        }
                    });
        }
    }

    private List<Effect> onNode(NodeActor.Introduction introduction, long now) {
        NodeInfo node = introduction.info();
        if (left.contains(introduction.node())) {
            return List.of(); // it said so before it heard that it is to leave
        }
        if (dead.contains(node.process()) || !services.processes().mayLive(node.pid())) {
            return List.of(); // its last words: they may come after the news of its death
        }
        nodes.put(node, introduction.node());
        if (introduction.epoch() > coordinator.epoch()) {
            // an epoch is in the journal before anybody hears of it
            coordinator.onHigherEpoch(node, introduction.epoch(), now).forEach(this::perform);
            ask(introduction.node());
            return List.of();
        }
        if (introduction.epoch() < coordinator.epoch()) {
            ask(introduction.node()); // nobody has, or not since the run came to this epoch
        }
        List<Effect> effects =
                coordinator.onNode(
                        node,
                        introduction.epoch(),
                        introduction.ranks().stream().map(PipelineSupervisor::hosted).toList(),
                        now);
        introduction.ranks().stream()
                .filter(rank -> coordinator.has(hosted(rank), node))
                .forEach(rank -> stages.put(rank.rank(), new Stage(rank.epoch(), rank.stage())));
        return effects;
    }

    private static HostedRank hosted(NodeActor.Hosting hosting) {
        return new HostedRank(hosting.rank(), hosting.epoch());
    }

    // ---- what is to be done ---------------------------------------------------------------------

    private void perform(Effect effect) {
        switch (effect) {
            case Effect.HostRank host -> {
                NodeInfo node = host.node();
                services.processes().placed(host.birth().rank(), node.process(), node.pid());
                Objects.requireNonNull(nodes.get(node))
                        .tell(
                                new NodeActor.HostRank(
                                        host.birth(), plan.hash(), events, hostAnswers));
            }
            case Effect.TellRank(int rank, var order) ->
                    Objects.requireNonNull(stages.get(rank))
                            .ref()
                            .tell(new StageActor.Order(order, events));
            case Effect.Dismiss(NodeInfo node, HostedRank stray, var order) ->
                    Objects.requireNonNull(nodes.get(node))
                            .tell(new NodeActor.Dismiss(stray, order));
            case Effect.Leave(NodeInfo node) -> {
                ActorRef<NodeActor.Command> leaving = Objects.requireNonNull(nodes.remove(node));
                left.add(leaving);
                leaving.tell(new NodeActor.Leave());
            }
            case Effect.Journal(List<JournalRecord> entries) -> services.journal().append(entries);
            case Effect.StartProcess(var rank) -> services.processes().start(rank);
            case Effect.AskRoom(Map<Integer, NodeInfo> ranks) ->
                    getContext()
                            .pipeToSelf(
                                    services.processes().takeIn(processes(ranks)),
                                    (granted, error) ->
                                            new RoomAnswered(ranks, error == null && granted));
            case Effect.AskPlan asked -> makePlan(asked);
            case Effect.ReadVitals(Set<NodeInfo> looked) ->
                    getContext().getSelf().tell(vitals(looked));
            case Effect.RestartLink(Set<String> gone) -> services.processes().restartLink(gone);
            case Effect.Publish publish -> publish(publish);
            case Effect.Abandon(long step, int epoch) ->
                    services.checkpoints().abandon(step, epoch);
            case Effect.FindOlder(long damaged) -> findOlder(damaged);
            case Effect.Notify(var call) -> {
                listener.tell(call);
                react();
            }
            case Effect.Finish(RunOutcome how) -> finish(how);
        }
    }

    /** After what the listener was told, and on its thread: to look at steps takes time. */
    private void react() {
        PlanReaction reaction = services.reaction();
        if (!reaction.equals(PlanReaction.NONE)) {
            ActorRef<Command> self = getContext().getSelf();
            listener.tell(_ -> reaction.wanted().ifPresent(plan -> self.tell(new Revise(plan))));
        }
    }

    private VitalsRead vitals(Set<NodeInfo> looked) {
        Map<NodeInfo, VitalSigns> signs = new HashMap<>();
        for (NodeInfo node : looked) {
            services.vitals()
                    .of(node.pid(), node.address().map(PeerAddress::host))
                    .ifPresent(seen -> signs.put(node, seen));
        }
        return new VitalsRead(signs, services.vitals().ofThisProcess());
    }

    private static Map<Integer, String> processes(Map<Integer, NodeInfo> ranks) {
        Map<Integer, String> processes = new HashMap<>();
        ranks.forEach((rank, node) -> processes.put(rank, node.process()));
        return processes;
    }

    private void makePlan(Effect.AskPlan asked) {
        var blocking = getContext().getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        getContext()
                .pipeToSelf(
                        CompletableFuture.supplyAsync(
                                () -> services.degraded().without(asked.now(), asked.absent()),
                                blocking),
                        (made, error) -> {
                            if (error != null) {
                                LOG.error(
                                        "run {}: no plan without ranks {}",
                                        plan.runId(),
                                        asked.absent(),
                                        error);
                            }
                            return new PlanMade(
                                    asked.absent(), made == null ? Optional.empty() : made);
                        });
    }

    private void findOlder(long damaged) {
        var blocking = getContext().getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        getContext()
                .pipeToSelf(
                        CompletableFuture.supplyAsync(
                                () -> services.checkpoints().newestBefore(damaged), blocking),
                        (found, error) -> {
                            if (error != null) {
                                LOG.error(
                                        "run {}: checkpoints cannot be listed",
                                        plan.runId(),
                                        error);
                            }
                            return new OlderFound(found == null ? OptionalLong.empty() : found);
                        });
    }

    private void publish(Effect.Publish publish) {
        var blocking = getContext().getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        CompletionStage<Void> published =
                CompletableFuture.runAsync(
                        () ->
                                services.checkpoints()
                                        .publish(
                                                publish.step(),
                                                publish.epoch(),
                                                publish.files(),
                                                publish.lossScale()),
                        blocking);
        getContext()
                .pipeToSelf(
                        published,
                        (_, error) ->
                                new Published(
                                        new Publication(
                                                publish.step(),
                                                publish.bytes(),
                                                System.nanoTime() - publish.startNanos(),
                                                Optional.ofNullable(error)
                                                        .map(SaveRound::reason))));
    }
}
