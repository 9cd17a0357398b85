package dev.penstock.runtime.cluster;

import akka.actor.ActorIdentity;
import akka.actor.ActorSystem;
import akka.actor.Identify;
import akka.pattern.Patterns;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;

/** Whether a node's actors answer; if not, only a restart helps. Asked by {@code /alive}. */
public final class NodeLiveness implements Supplier<CompletionStage<Boolean>> {
    private static final Duration PATIENCE = Duration.ofSeconds(4);

    private final ActorSystem system;

    /** Made by Akka. */
    public NodeLiveness(ActorSystem system) {
        this.system = system;
    }

    @Override
    public CompletionStage<Boolean> get() {
        return Patterns.ask(
                        system.actorSelection("/user/" + NodeManagement.MEMBERS),
                        new Identify(NodeManagement.MEMBERS),
                        PATIENCE)
                .handle(
                        (answer, _) ->
                                answer instanceof ActorIdentity identity
                                        && identity.getActorRef().isPresent());
    }
}
