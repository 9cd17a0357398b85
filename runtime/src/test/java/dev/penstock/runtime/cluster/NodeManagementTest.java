package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.certificates.CertificateAuthority;
import dev.penstock.runtime.certificates.NodeCertificate;
import dev.penstock.runtime.certificates.NodeFiles;
import dev.penstock.runtime.config.node.NodeConfig;
import dev.penstock.runtime.config.node.NodeLoader;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What nodes say of themselves over HTTP, and how they find each other there. */
@Execution(ExecutionMode.CONCURRENT) // nodes mostly wait for each other
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NodeManagementTest {
    private static final Duration PATIENCE = Duration.ofSeconds(100);

    @TempDir Path folder;

    private final CompletableFuture<Void> end = new CompletableFuture<>();
    private final List<Thread> nodes = new ArrayList<>();

    @AfterEach
    void endNodes() throws InterruptedException {
        end.complete(null);
        for (Thread node : nodes) {
            node.join(Duration.ofSeconds(60));
        }
    }

    @Test
    void aNodeIsAliveAtOnceAndReadyWhenItHasJoined() throws Exception {
        int seed = freePort();
        var said = start("cluster.seeds = [\"127.0.0.1:%d\"], management.port = 0".formatted(seed));
        URI worker =
                URI.create(
                        await(said, "says how it is at ")
                                .replaceAll(".*(http://127.0.0.1:\\d+)/ready.*", "$1"));
        try (HttpClient http = HttpClient.newHttpClient()) {
            assertThat(status(http, worker.resolve("/alive"))).isEqualTo(200);
            assertThat(status(http, worker.resolve("/ready"))).isEqualTo(500);
            assertThat(status(http, worker.resolve("/bootstrap/seed-nodes"))).isEqualTo(404);

            start("cluster { role = seed, port = %d }".formatted(seed));

            Awaitility.await()
                    .atMost(PATIENCE)
                    .until(() -> status(http, worker.resolve("/ready")) == 200);
            await(said, "joined the cluster");
        }
    }

    @Test
    void nodesThatKnowNoSeedFindEachOtherInTls() throws Exception {
        NodeFiles files =
                CertificateAuthority.create(folder.resolve("certs"))
                        .issue("127.0.0.1", List.of(), 2);
        int first = freePort();
        int second = freePort();
        String listed =
                """
                cluster.tls { certificate = "%s", key = "%s", authority = "%s" }
                management { discovery = listed, contacts = ["127.0.0.1:%d", "127.0.0.1:%d"] }
                """
                        .formatted(
                                files.certificate(), files.key(), files.authority(), first, second);
        // founds nothing: a cluster begins with a seed
        var worker = start(listed + "management.port = " + freePort());
        start(listed + "cluster.role = seed, management.port = " + first);
        start(listed + "cluster.role = seed, management.port = " + second);

        await(worker, "joined the cluster");
        try (HttpClient http =
                HttpClient.newBuilder().sslContext(NodeCertificate.read(files).context()).build()) {
            for (int port : List.of(first, second)) {
                URI ready = URI.create("https://127.0.0.1:%d/ready".formatted(port));
                Awaitility.await().atMost(PATIENCE).until(() -> status(http, ready) == 200);
            }
            assertThatThrownBy(
                            () -> status(http, URI.create("http://127.0.0.1:" + first + "/ready")))
                    .isInstanceOf(IOException.class);
            URI members = URI.create("https://127.0.0.1:%d/bootstrap/seed-nodes".formatted(first));
            Awaitility.await()
                    .atMost(PATIENCE)
                    .until(() -> get(http, members).body().split("\"nodeUid\"").length == 4);
        }
    }

    /** Neither is to be had here: the node says whom it looks for and goes on looking. */
    @ParameterizedTest
    @CsvSource({
        "discovery = kubernetes, pods with app=penstock",
        "'discovery = dns, service = seeds.invalid', the addresses of seeds.invalid"
    })
    void aNodeThatFindsNobodyGoesOnLooking(String discovery, String whom) throws Exception {
        int port = freePort();
        var said =
                start(
                        "cluster.role = seed, management { port = %d, %s }"
                                .formatted(port, discovery));

        await(said, "waits for a seed at " + whom);

        try (HttpClient http = HttpClient.newHttpClient()) {
            URI node = URI.create("http://127.0.0.1:" + port);
            Awaitility.await() // it may look for others before it listens
                    .atMost(PATIENCE)
                    .ignoreExceptionsInstanceOf(ConnectException.class)
                    .until(() -> status(http, node.resolve("/alive")) == 200);
            assertThat(status(http, node.resolve("/ready"))).isEqualTo(500);
        }
    }

    @Test
    void aTakenPortIsNamed() throws IOException {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            NodeConfig config =
                    config("cluster.role = seed, management.port = " + taken.getLocalPort());

            assertThatThrownBy(() -> new NodeProcess(config, _ -> {}).run(end))
                    .isInstanceOf(ClusterException.class)
                    .hasMessageContaining("expected to listen on 127.0.0.1:" + taken.getLocalPort())
                    .hasMessageContaining("management.port");
        }
    }

    private static int status(HttpClient http, URI address)
            throws IOException, InterruptedException {
        return get(http, address).statusCode();
    }

    private static HttpResponse<String> get(HttpClient http, URI address)
            throws IOException, InterruptedException {
        return http.send(
                HttpRequest.newBuilder(address).timeout(Duration.ofSeconds(30)).build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private static int freePort() throws IOException {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return free.getLocalPort();
        }
    }

    private NodeConfig config(String settings) throws IOException {
        Path file = Files.createTempFile(folder, "node-", ".conf");
        Files.writeString(
                file, "cluster.runs = \"%s\"\n%s".formatted(folder.resolve("runs"), settings));
        return NodeLoader.load(file, List.of());
    }

    private LinkedBlockingQueue<String> start(String settings) throws IOException {
        NodeConfig config = config(settings);
        var said = new LinkedBlockingQueue<String>();
        nodes.add(Thread.ofVirtual().start(() -> new NodeProcess(config, said::add).run(end)));
        return said;
    }

    private static String await(LinkedBlockingQueue<String> said, String words)
            throws InterruptedException {
        while (true) {
            String line = said.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS);
            assertThat(line).as("what the node says, waiting for: " + words).isNotNull();
            if (line.contains(words)) {
                return line;
            }
        }
    }
}
