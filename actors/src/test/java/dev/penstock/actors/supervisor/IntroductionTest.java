package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.testkit.typed.javadsl.ManualTime;
import akka.actor.testkit.typed.javadsl.TestProbe;
import akka.actor.typed.ActorRef;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.cuda.device.Device;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A node that knows its supervisor says who it is, and says it again while it may be lost. */
class IntroductionTest {
    private final ActorTestKit kit = ActorTestKit.create(ManualTime.config());
    private final ManualTime time = ManualTime.get(kit.system());
    private final TestProbe<NodeActor.Introduction> supervisor = kit.createTestProbe();

    @AfterEach
    void end() {
        kit.shutdownTestKit();
    }

    @Test
    void isRepeatedUntilTheSupervisorAsks() {
        ActorRef<NodeActor.Command> node = startNode();
        assertThat(supervisor.receiveMessage().epoch()).isZero();

        time.timePasses(Duration.ofSeconds(1));
        assertThat(supervisor.receiveMessage().epoch()).as("asked by nobody yet").isZero();

        node.tell(new NodeActor.Introduce(3, supervisor.ref()));
        assertThat(supervisor.receiveMessage().epoch()).isEqualTo(3);
        time.expectNoMessageFor(Duration.ofMinutes(1), supervisor);
    }

    private ActorRef<NodeActor.Command> startNode() {
        var chain = new ChainPipeline("gpipe", new ChainStage.Settings(1, 2, 1, false, 0.1));
        var resources =
                RankResources.of(
                        chain.plan(),
                        _ -> NoRanksHere.refuse(),
                        chain.programs,
                        new NoRanksHere(),
                        chain);
        var info = TestNodes.ofAny("a node", 1);
        ActorRef<NodeActor.Command> node =
                kit.spawn(NodeActor.create(info, resources, supervisor.ref()));
        time.timePasses(Duration.ofMillis(1));
        return node;
    }

    private record NoRanksHere() implements DataPlane {
        static Device refuse() {
            throw new AssertionError("no rank is hosted here");
        }

        @Override
        public Endpoint open(Opening opening, FrameListener listener) {
            throw new AssertionError("no rank is hosted here");
        }

        @Override
        public PeerAddress address() {
            throw new AssertionError("no rank is hosted here");
        }

        @Override
        public boolean keepsSentTensors() {
            return false;
        }

        @Override
        public void close() {}
    }
}
