package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import akka.actor.typed.ActorSystem;
import akka.actor.typed.javadsl.Behaviors;
import akka.cluster.typed.Cluster;
import com.typesafe.config.Config;
import dev.penstock.runtime.config.node.NodeConfig;
import dev.penstock.runtime.config.node.NodeLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nodes at rest wake seldom, and yet the dead are out of the cluster in time. */
class NodeSystemsTest {
    private static Config settings;

    @BeforeAll
    static void startANode(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("node.conf");
        Files.writeString(file, "cluster { role = both, port = 0, bind = 127.0.0.1 }");
        NodeConfig node = NodeLoader.load(file, List.of());
        ActorSystem<Void> system =
                NodeSystems.member(
                        Behaviors.empty(),
                        node,
                        0,
                        NodeSystems.FOUNDS_AFTER,
                        NodeSystems.identity("a", "test"));
        Cluster.get(system); // else it is still on its way when the system ends
        settings = system.settings().config();
        system.terminate();
    }

    @Test
    void aSilentNodeOfASmallClusterIsOutWithinTwelveSecondsAndAPauseOfTwoIsNoSilence() {
        Duration beat = settings.getDuration("akka.cluster.failure-detector.heartbeat-interval");
        Duration pause =
                settings.getDuration("akka.cluster.failure-detector.acceptable-heartbeat-pause");
        Duration settling = settings.getDuration("akka.cluster.split-brain-resolver.stable-after");
        assertThat(beat.plus(pause).plus(settling)).isLessThan(Duration.ofSeconds(12));
        assertThat(pause).isGreaterThanOrEqualTo(Duration.ofSeconds(2));
    }

    /** Akka's table; a larger cluster than it names takes the most. */
    @Test
    void aLargerClusterSettlesForLonger() {
        assertThat(List.of(1, 5, 6, 20, 21, 1_000).stream().map(NodeSystems::stableAfter))
                .containsExactly(7, 7, 10, 13, 17, 30);
    }

    /** Of a network that is for documents. */
    @Test
    void anAddressThatIsNotOfThisMachineIsNamedWithThoseThatAre(@TempDir Path folder)
            throws Exception {
        Path file = folder.resolve("node.conf");
        Files.writeString(
                file, "cluster { role = seed, port = 0, bind = 203.0.113.250, insecure = true }");
        NodeConfig node = NodeLoader.load(file, List.of());

        assertThatThrownBy(() -> new NodeProcess(node, _ -> {}).run(new CompletableFuture<>()))
                .isInstanceOf(ClusterException.class)
                .hasMessageContaining("cluster.bind: expected an address of this machine")
                .hasMessageContaining("127.0.0.1")
                .hasMessageContaining("got 203.0.113.250");
    }

    /** With Akka's own answer, seven seconds of changes would end all nodes and all runs. */
    @Test
    void reachabilityThatChangesForAWhileEndsNobody() {
        assertThat(settings.getDuration("akka.cluster.split-brain-resolver.down-all-when-unstable"))
                .isEqualTo(Duration.ofMinutes(5));
        assertThat(settings.getBoolean("akka.remote.deployment.enable-allow-list")).isTrue();
        assertThat(settings.getStringList("akka.remote.deployment.allowed-actor-classes"))
                .isEmpty();
    }

    /** In a partition, a side must see all of the other as unreachable: few observers miss some. */
    @Test
    void everyNodeIsWatchedByAsManyAsAkkaAdvises() {
        assertThat(settings.getInt("akka.cluster.failure-detector.monitored-by-nr-of-members"))
                .isGreaterThanOrEqualTo(9);
    }

    @Test
    void theClusterNeedsNoSchedulerOfItsOwn() {
        assertThat(settings.getDuration("akka.scheduler.tick-duration"))
                .isLessThanOrEqualTo(settings.getDuration("akka.cluster.scheduler.tick-duration"));
    }
}
