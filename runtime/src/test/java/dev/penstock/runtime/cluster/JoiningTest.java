package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import akka.actor.CoordinatedShutdown;
import akka.actor.CoordinatedShutdown.IncompatibleConfigurationDetectedReason$;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.javadsl.Behaviors;
import akka.cluster.typed.Cluster;
import akka.cluster.typed.JoinSeedNodes;
import dev.penstock.actors.cluster.Greeting;
import dev.penstock.actors.cluster.Identity;
import dev.penstock.runtime.certificates.CertificateAuthority;
import dev.penstock.runtime.certificates.NodeFiles;
import dev.penstock.runtime.config.node.NodeConfig;
import dev.penstock.runtime.config.node.NodeLoader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Nodes of one process that meet over real connections: who may join, and what others hear. */
@Execution(ExecutionMode.CONCURRENT) // nodes mostly wait for each other
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class JoiningTest {
    @TempDir Path folder;

    private final CompletableFuture<Void> end = new CompletableFuture<>();
    private final List<Thread> nodes = new ArrayList<>();
    private NodeFiles ours = new NodeFiles(Path.of(""), Path.of(""), Path.of(""));
    private String seed = "";

    @BeforeEach
    void startASeedWithTls() throws Exception {
        CertificateAuthority authority = CertificateAuthority.create(folder.resolve("ours"));
        ours = authority.issue("127.0.0.1", List.of(), 2);
        var said = start("role = seed, port = 0, name = s, " + tls(ours));
        seed = await(said, line -> line.contains(" listens on ")).replaceAll(".* listens on ", "");
    }

    @AfterEach
    void endNodes() throws InterruptedException {
        end.complete(null);
        for (Thread node : nodes) {
            node.join(Duration.ofSeconds(60));
        }
    }

    @Test
    void aClientWithACertificateIsAnsweredAndOneWithoutIsNot() {
        try (var client = ClusterClient.connect(List.of(seed), false, Optional.of(ours))) {
            assertThat(client.list().runs()).isEmpty();
        }
        assertThatThrownBy(() -> ClusterClient.connect(List.of(seed), false, Optional.empty()))
                .isInstanceOf(ClusterException.class)
                .hasMessageContaining("no Penstock seed answers at " + seed);
    }

    @Test
    void seedsMayHaveAddressesOfTheLongKind() throws Exception {
        var said = start("role = seed, port = 0, name = six, bind = \"::1\"");
        String six =
                await(said, line -> line.contains(" listens on ")).replaceAll(".* listens on ", "");
        assertThat(six).startsWith("[::1]:");

        var worker = start("name = w, bind = \"::1\", seeds = [\"%s\"]".formatted(six));

        await(worker, line -> line.contains("joined the cluster: 1 seed, 1 worker"));
        try (var client = ClusterClient.connect(List.of(six), false, Optional.empty())) {
            assertThat(client.list().nodes()).hasSizeLessThanOrEqualTo(1);
        }
    }

    @Test
    void aNodeOfAnotherClusterIsRefusedAndBothSidesAreNamed() throws IOException {
        NodeConfig other =
                config(
                        "cluster-id = blue, name = w, seeds = [\"%s\"], %s"
                                .formatted(seed, tls(ours)));

        assertThatThrownBy(() -> new NodeProcess(other, _ -> {}).run(end))
                .isInstanceOf(ClusterException.class)
                .hasMessageContaining("node w (127.0.0.1")
                .hasMessageContaining("node s (127.0.0.1, pid")
                .hasMessageContaining("cluster-id blue here, penstock there");
    }

    @Test
    void aNodeOfAnotherVersionIsRefused() throws IOException {
        NodeConfig worker = config("name = w, seeds = [\"%s\"], %s".formatted(seed, tls(ours)));
        Identity today = NodeSystems.identity("penstock", "w");
        for (Identity another :
                List.of(
                        new Identity("penstock", today.protocol() + 1, today.registry(), "w"),
                        new Identity("penstock", today.protocol(), "0123456789abcdef", "w"))) {
            ActorSystem<Void> system =
                    NodeSystems.member(
                            Behaviors.empty(), worker, 0, NodeSystems.FOUNDS_AFTER, another);
            Cluster.get(system)
                    .manager()
                    .tell(new JoinSeedNodes(List.of(NodeProcess.address(seed))));

            Awaitility.await()
                    .atMost(Duration.ofSeconds(60))
                    .until(() -> system.getWhenTerminated().toCompletableFuture().isDone());
            assertThat(CoordinatedShutdown.get(system).getShutdownReason())
                    .containsInstanceOf(IncompatibleConfigurationDetectedReason$.class);
        }
    }

    @Test
    void aClientOfAnotherVersionIsToldWhatDiffers() throws IOException {
        NodeConfig config = config("role = seed, name = old, " + tls(ours));
        Identity today = NodeSystems.identity("penstock", "node old");
        var old = new Identity("penstock", today.protocol(), "0123456789abcdef", "node old");
        ActorSystem<Void> system =
                NodeSystems.member(
                        Behaviors.setup(
                                context -> {
                                    context.spawn(Greeting.create(old), Greeting.ACTOR);
                                    return Behaviors.empty();
                                }),
                        config,
                        0,
                        NodeSystems.FOUNDS_AFTER,
                        old);
        String itsAddress = Cluster.get(system).selfMember().address().hostPort();
        String seedOfOld = itsAddress.substring(itsAddress.indexOf('@') + 1);

        assertThatThrownBy(
                        () -> ClusterClient.connect(List.of(seedOfOld), false, Optional.of(ours)))
                .isInstanceOf(ClusterException.class)
                .hasMessageContaining("node old cannot work together")
                .hasMessageContaining("0123456789abcdef there")
                .hasMessageNotContaining("start one with");
        system.terminate();
    }

    @Test
    void aNodeWhoseCertificateOthersWouldRefuseDoesNotStart() throws IOException {
        NodeConfig config = config("role = seed, advertise = \"10.0.0.9\", " + tls(ours));

        assertThatThrownBy(() -> new NodeProcess(config, _ -> {}).run(end))
                .isInstanceOf(ClusterException.class)
                .hasMessageContaining("127.0.0.1.pem")
                .hasMessageContaining("others reach this node as 10.0.0.9")
                .hasMessageContaining("penstock certs add");
    }

    private static String tls(NodeFiles files) {
        return "tls { certificate = \"%s\", key = \"%s\", authority = \"%s\" }"
                .formatted(files.certificate(), files.key(), files.authority());
    }

    private NodeConfig config(String settings) throws IOException {
        Path file = Files.createTempFile(folder, "node-", ".conf");
        Files.writeString(
                file, "cluster { runs = \"%s\", %s }".formatted(folder.resolve("runs"), settings));
        return NodeLoader.load(file, List.of());
    }

    private LinkedBlockingQueue<String> start(String settings) throws IOException {
        NodeConfig config = config(settings);
        var said = new LinkedBlockingQueue<String>();
        nodes.add(Thread.ofVirtual().start(() -> new NodeProcess(config, said::add).run(end)));
        return said;
    }

    private static String await(LinkedBlockingQueue<String> said, Predicate<String> wanted)
            throws InterruptedException {
        while (true) {
            String line = said.poll(60, TimeUnit.SECONDS);
            assertThat(line).as("what the node says").isNotNull();
            if (wanted.test(line)) {
                return line;
            }
        }
    }
}
