package dev.penstock.actors.node;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.receptionist.Receptionist;
import akka.actor.typed.receptionist.ServiceKey;
import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.shard.RankBirth;
import dev.penstock.actors.shard.RankEvent;
import dev.penstock.actors.shard.RankResources;
import dev.penstock.actors.stage.StageActor;

/**
 * Announces a process to the run's supervisor and hosts the ranks that the supervisor places here.
 */
public final class NodeActor extends AbstractBehavior<NodeActor.Command> {
    /** What a node understands. */
    public sealed interface Command extends WireMessage {}

    /** Say who you are. */
    public record Introduce(ActorRef<Introduction> replyTo) implements Command {}

    /** Open a rank of the plan with this hash. */
    public record HostRank(
            RankBirth birth,
            String planHash,
            ActorRef<RankEvent> events,
            ActorRef<HostAnswer> replyTo)
            implements Command {}

    /** The answer to {@link Introduce}. */
    public record Introduction(NodeInfo info, ActorRef<Command> node) implements WireMessage {}

    /** The answer to {@link HostRank}. */
    public sealed interface HostAnswer extends WireMessage {}

    /** The rank is opening; its events follow. */
    public record Hosting(int rank, int epoch, ActorRef<StageActor.Command> stage)
            implements HostAnswer {}

    /** This node does not host that rank. */
    public record HostingRefused(int rank, int epoch, String reason) implements HostAnswer {}

    private final NodeInfo info;
    private final RankResources resources;

    private NodeActor(ActorContext<Command> context, NodeInfo info, RankResources resources) {
        super(context);
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
        return Behaviors.setup(context -> new NodeActor(context, info, resources));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder().onMessage(Command.class, this::onCommand).build();
    }

    private Behavior<Command> onCommand(Command command) {
        switch (command) {
            case Introduce(ActorRef<Introduction> replyTo) ->
                    replyTo.tell(new Introduction(info, getContext().getSelf()));
            case HostRank host -> onHostRank(host);
        }
        return this;
    }

    private void onHostRank(HostRank host) {
        RankBirth birth = host.birth();
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
        ActorRef<StageActor.Command> stage =
                getContext()
                        .spawn(
                                StageActor.create(birth, resources, host.events()),
                                "rank-%d-epoch-%d".formatted(birth.rank(), birth.epoch()));
        host.replyTo().tell(new Hosting(birth.rank(), birth.epoch(), stage));
    }
}
