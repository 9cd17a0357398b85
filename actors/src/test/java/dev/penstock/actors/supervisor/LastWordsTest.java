package dev.penstock.actors.supervisor;

import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.typed.ActorRef;
import akka.actor.typed.receptionist.Receptionist;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.RunJournal;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.ProcessVitals;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A process says who it is, dies, and is heard only after its death was. */
class LastWordsTest {
    private static final long DEAD = 98;
    private static final long ALIVE = 99;

    private final ActorTestKit kit = ActorTestKit.create();

    @AfterEach
    void end() {
        kit.shutdownTestKit();
    }

    @Test
    void noRankGoesToAProcessThatIsKnownToBeDead() {
        var chain = new ChainPipeline("gpipe", new ChainStage.Settings(1, 2, 1, false, 0.1));
        var services =
                new SupervisorServices(
                        chain,
                        RecoveryPolicy.DEFAULT,
                        RunJournal.NONE,
                        new Processes(),
                        ProcessVitals.NONE);
        kit.spawn(
                PipelineSupervisor.create(
                        chain.plan(), chain, services, new CompletableFuture<>()));
        var dead = kit.<NodeActor.Command>createTestProbe();
        var living = kit.<NodeActor.Command>createTestProbe();
        kit.system()
                .receptionist()
                .tell(Receptionist.register(NodeActor.key(chain.plan().runId()), dead.getRef()));
        ActorRef<NodeActor.Introduction> introductions =
                dead.expectMessageClass(NodeActor.Introduce.class).replyTo();

        introductions.tell(introduction(DEAD, dead.getRef()));
        introductions.tell(introduction(ALIVE, living.getRef()));

        living.expectMessageClass(NodeActor.HostRank.class);
        dead.expectNoMessage();
    }

    private static NodeActor.Introduction introduction(long pid, ActorRef<NodeActor.Command> node) {
        return new NodeActor.Introduction(
                TestNodes.of("stage process 0", pid, 0), node, 1, List.of());
    }

    private static final class Processes implements ProcessSupply {
        @Override
        public void start(Optional<Integer> rank) {}

        @Override
        public boolean mayLive(long pid) {
            return pid != DEAD;
        }

        @Override
        public void restartLink() {}
    }
}
