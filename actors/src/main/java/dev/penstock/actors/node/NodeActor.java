package dev.penstock.actors.node;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.Terminated;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import akka.actor.typed.receptionist.Receptionist;
import akka.actor.typed.receptionist.ServiceKey;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.rank.StageActor;
import dev.penstock.actors.serialization.WireMessage;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Announces a process to the run's supervisor and hosts the ranks that the supervisor places here.
 */
public final class NodeActor extends AbstractBehavior<NodeActor.Command> {
    /** What a node understands. */
    public sealed interface Command extends WireMessage {}

    /**
     * Say who you are, now and whenever it changes. Whoever asks supervises the run from now on in
     * this epoch or a later one: ranks of a lower one are opened for nobody any more.
     */
    public record Introduce(int epoch, ActorRef<Introduction> replyTo) implements Command {}

    /** End a rank that was born in this epoch: another has its place. */
    public record Dismiss(HostedRank stray, RankCommand.Stop order) implements Command {}

    /** End: the rank that this node is for lives elsewhere from now on. */
    public record Leave() implements Command {}

    /** Open a rank of the plan with this hash. */
    public record HostRank(
            RankAssignment birth,
            String planHash,
            ActorRef<RankEvent> events,
            ActorRef<HostAnswer> replyTo)
            implements Command {}

    /**
     * The answer to {@link Introduce}.
     *
     * @param epoch the highest in which a supervisor asked; if it is higher than the one that asks
     *     now, the node does not follow it
     * @param ranks that live here
     */
    public record Introduction(
            NodeInfo info, ActorRef<Command> node, int epoch, List<Hosting> ranks)
            implements WireMessage {
        public Introduction {
            ranks = List.copyOf(ranks);
        }
    }

    /** The answer to {@link HostRank}. */
    public sealed interface HostAnswer extends WireMessage {}

    /** The rank is opening; its events follow. */
    public record Hosting(int rank, int epoch, ActorRef<StageActor.Command> stage)
            implements HostAnswer {}

    /** This node does not host that rank. */
    public record HostingRefused(int rank, int epoch, String reason) implements HostAnswer {}

    private static final Duration SAY_AGAIN = Duration.ofSeconds(1);

    /** Of a node that asks itself, in the place of a supervisor that has not asked yet. */
    private static final int NO_EPOCH = -1;

    private final TimerScheduler<Command> timers;
    private final NodeInfo info;
    private final RankResources resources;
    private final List<Hosting> hosted = new ArrayList<>();

    /** By rank: who has its place once the one before has ended, which holds its channels. */
    private final Map<Integer, HostRank> next = new HashMap<>();

    private @Nullable ActorRef<Introduction> supervisor;
    private int epoch;

    private NodeActor(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            NodeInfo info,
            RankResources resources) {
        super(context);
        this.timers = timers;
        this.info = info;
        this.resources = resources;
        context.getSystem()
                .receptionist()
                .tell(Receptionist.register(key(resources.plan().runId()), context.getSelf()));
    }

    /** Where the receptionist lists the nodes of a run; a cluster may have several runs. */
    public static ServiceKey<Command> key(String runId) {
        return ServiceKey.create(Command.class, "penstock-node-of-" + runId);
    }

    /** A node that gives its ranks these resources. */
    public static Behavior<Command> create(NodeInfo info, RankResources resources) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> new NodeActor(context, timers, info, resources)));
    }

    /**
     * The same, for a node that knows its supervisor: it says who it is until it is asked, since
     * what it says may be lost.
     */
    public static Behavior<Command> create(
            NodeInfo info, RankResources resources, ActorRef<Introduction> supervisor) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> {
                                    timers.startTimerWithFixedDelay(
                                            new Introduce(NO_EPOCH, supervisor),
                                            Duration.ZERO,
                                            SAY_AGAIN);
                                    return new NodeActor(context, timers, info, resources);
                                }));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Command.class, this::onCommand)
                .onSignal(Terminated.class, this::onTerminated)
                .build();
    }

    private Behavior<Command> onCommand(Command command) {
        switch (command) {
            case Introduce(int of, ActorRef<Introduction> replyTo) -> {
                if (of >= epoch) {
                    timers.cancelAll();
                    epoch = of;
                    supervisor = replyTo;
                }
                introduce(replyTo);
            }
            case HostRank host -> onHostRank(host);
            case Dismiss(HostedRank stray, RankCommand.Stop order) -> dismiss(stray, order);
            case Leave _ -> {
                return Behaviors.stopped();
            }
        }
        return this;
    }

    /**
     * Dismisses one of the same rank, of which its supervisor's dismissal was lost.
     *
     * @return whether there is one
     */
    private boolean dismissFormer(RankAssignment birth) {
        var stop = new RankCommand.Stop(birth.epoch());
        boolean found = false;
        for (Hosting each : hosted) {
            if (each.rank() == birth.rank() && each.epoch() < birth.epoch()) {
                dismiss(new HostedRank(each.rank(), each.epoch()), stop);
                found = true;
            }
        }
        return found;
    }

    /** Nobody waits for its farewell. */
    private void dismiss(HostedRank stray, RankCommand.Stop order) {
        ActorRef<RankEvent> nobody = getContext().getSystem().ignoreRef();
        hosted.stream()
                .filter(each -> each.rank() == stray.rank())
                .filter(each -> each.epoch() == stray.birthEpoch())
                .forEach(each -> each.stage().tell(new StageActor.Order(order, nobody)));
    }

    private void introduce(ActorRef<Introduction> to) {
        to.tell(new Introduction(info, getContext().getSelf(), epoch, hosted));
    }

    /** A new supervisor may have counted on a rank whose end was told to the old one. */
    private Behavior<Command> onTerminated(Terminated ended) {
        ActorRef<Introduction> to = supervisor;
        ActorRef<?> stage = ended.getRef();
        boolean isOlder =
                hosted.stream()
                        .anyMatch(each -> each.stage().equals(stage) && each.epoch() < epoch);
        List<HostRank> waiting =
                hosted.stream()
                        .filter(each -> each.stage().equals(stage))
                        .map(each -> next.remove(each.rank()))
                        .filter(Objects::nonNull)
                        .toList();
        hosted.removeIf(each -> each.stage().equals(stage));
        waiting.forEach(this::onHostRank);
        if (to != null && isOlder) {
            introduce(to);
        }
        return this;
    }

    private void onHostRank(HostRank host) {
        RankAssignment birth = host.birth();
        if (birth.epoch() < epoch) {
            return; // asked by a supervisor that another has followed
        }
        Optional<Hosting> already =
                hosted.stream()
                        .filter(each -> each.rank() == birth.rank())
                        .filter(each -> each.epoch() == birth.epoch())
                        .findFirst();
        if (already.isPresent()) { // the answer was lost
            host.replyTo().tell(already.get());
            return;
        }
        String own = resources.plan().hash();
        if (!own.equals(host.planHash())) {
            host.replyTo()
                    .tell(
                            new HostingRefused(
                                    birth.rank(),
                                    birth.epoch(),
                                    "node %s built another plan: supervisor's hash %s, own %s; start all nodes with the same configuration and version"
                                            .formatted(info.name(), host.planHash(), own)));
            return;
        }
        if (dismissFormer(birth)) {
            next.put(birth.rank(), host);
            return;
        }
        ActorRef<StageActor.Command> stage =
                getContext()
                        .spawn(
                                StageActor.create(birth, resources, host.events()),
                                "%s-rank-%d-epoch-%d"
                                        .formatted(
                                                resources.plan().stageName(birth.rank()),
                                                birth.rank(),
                                                birth.epoch()));
        getContext().watch(stage);
        var hosting = new Hosting(birth.rank(), birth.epoch(), stage);
        hosted.add(hosting);
        host.replyTo().tell(hosting);
    }
}
