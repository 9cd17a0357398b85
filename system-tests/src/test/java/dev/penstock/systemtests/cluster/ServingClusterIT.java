package dev.penstock.systemtests.cluster;

import static dev.penstock.systemtests.support.TestCluster.address;
import static dev.penstock.systemtests.support.TestCluster.plainWorkerProcess;
import static dev.penstock.systemtests.support.TestCluster.worker;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.HostedCli;
import dev.penstock.systemtests.support.RunningCli;
import dev.penstock.systemtests.support.TestCluster;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** A model whose stages are on the nodes of a cluster. */
@EnabledOnOs(OS.LINUX)
@Timeout(value = 3, unit = TimeUnit.MINUTES)
class ServingClusterIT {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir Path folder;

    private TestCluster cluster;
    private Path run;

    @BeforeEach
    void layOut() {
        cluster = new TestCluster(folder, PATIENCE);
        run = folder.resolve("tiny");
        SavedRun.write(run, 1, ModelConfig.gpt2(256, 64, 16, 2, 2, true));
    }

    /**
     * The node with the second rank is killed in the middle of a text, and another joins in its
     * place.
     */
    @Test
    void textsAreThoseOfGenerateAndTheDeathOfANodeIsSaidAndHealed() throws Exception {
        int port = TestCluster.freePort();
        try (HostedCli seed = cluster.seed();
                ForkedCli one = plainWorkerProcess(seed);
                ForkedCli two = plainWorkerProcess(seed)) {
            try (HostedCli serve = serve(seed, port)) {
                String node =
                        serve.awaitOutput("serving tiny: http://127.0.0.1:\\d+/ of node (\\S+)");
                assertThat(serve.output()).contains("rank 0 on " + node + " (");
                String pid = serve.awaitOutput("rank 1 on \\S+ \\(\\S+, pid (\\d+)\\)");
                ForkedCli second = one.output().contains("(pid %s)".formatted(pid)) ? one : two;
                assertThat(text(post(port, "\"max_tokens\": 90, \"seed\": 7")))
                        .isEqualTo(generated());

                CompletableFuture<HttpResponse<String>> growing =
                        CompletableFuture.supplyAsync(
                                () -> post(port, "\"max_tokens\": 100000, \"stream\": true"));
                await().atMost(PATIENCE).until(() -> metrics(port).contains("growing_texts 1"));
                second.signal("KILL");

                HttpResponse<String> ended = growing.get(60, TimeUnit.SECONDS);
                assertThat(ended.body())
                        .contains("\"code\":\"pipeline_interrupted\"")
                        .containsPattern("rank 1 \\(node \\S+, pid \\d+\\) died");
                HttpResponse<String> refused = post(port, "\"max_tokens\": 1");
                assertThat(refused.statusCode()).isEqualTo(503);
                assertThat(refused.body()).contains("rank 1 (node ");
                assertThat(get(port, "/health").statusCode()).isEqualTo(503);
                try (HostedCli _ = worker(seed)) {
                    await().atMost(PATIENCE).until(() -> get(port, "/health").statusCode() == 200);
                    assertThat(text(post(port, "\"max_tokens\": 90, \"seed\": 7")))
                            .isEqualTo(generated());

                    serve.interrupt();

                    assertThat(serve.awaitEnd(PATIENCE)).as(serve.output()).isEqualTo(ExitCode.OK);
                    assertThat(serve.output()).contains("tiny was served for");
                    expectNothingLeft(port);
                }
            }
        }
    }

    private void expectNothingLeft(int port) {
        await().atMost(PATIENCE)
                .untilAsserted(
                        () -> {
                            assertThatThrownBy(() -> get(port, "/health"))
                                    .isInstanceOf(UncheckedIOException.class);
                            assertThat(folder.resolve("runs/serving-tiny-1")).doesNotExist();
                        });
    }

    private HostedCli serve(RunningCli seed, int port) throws IOException {
        return HostedCli.start(
                List.of(
                        "serve",
                        run.toString(),
                        "--name=tiny",
                        "--stages=2",
                        "--ranks-per-node=1",
                        "--max-length=200000",
                        "--port=" + port,
                        "--cluster=" + address(seed)));
    }

    private String generated() throws IOException {
        Cli cli =
                Cli.run(
                        "generate",
                        run.toString(),
                        "--prompt=public ",
                        "--tokens=90",
                        "--seed=7",
                        "--json");
        return JSON.readTree(cli.out()).get("text").asText();
    }

    private static HttpResponse<String> post(int port, String fields) {
        return send(
                HttpRequest.newBuilder(uri(port, "/v1/completions"))
                        .header("Content-Type", "application/json")
                        .POST(
                                HttpRequest.BodyPublishers.ofString(
                                        "{\"prompt\": \"public \", %s}".formatted(fields))));
    }

    private static String text(HttpResponse<String> answer) throws IOException {
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        return JSON.readTree(answer.body()).at("/choices/0/text").asText();
    }

    private static String metrics(int port) {
        return get(port, "/metrics").body();
    }

    private static HttpResponse<String> get(int port, String path) {
        return send(HttpRequest.newBuilder(uri(port, path)));
    }

    private static URI uri(int port, String path) {
        return URI.create("http://127.0.0.1:%d%s".formatted(port, path));
    }

    private static HttpResponse<String> send(HttpRequest.Builder request) {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
