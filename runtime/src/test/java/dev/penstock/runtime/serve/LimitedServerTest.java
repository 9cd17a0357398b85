package dev.penstock.runtime.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.inference.JoiningTexts;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Keys, full queues and the end. */
@Timeout(120)
class LimitedServerTest {
    private static final String LONG =
            "{\"prompt\":\"a\",\"max_tokens\":90000,\"temperature\":1,\"stream\":%s}";
    @TempDir private Path folder;

    @Test
    void withoutItsKeyAServerSaysNothing() throws IOException {
        try (ServedRun served = ServedRun.withKey(folder, "correct-horse")) {
            String body = "{\"prompt\":\"a\",\"max_tokens\":2}";

            for (String key :
                    new String[] {"", "Bearer ", "Bearer correct-hors", "correct-horse"}) {
                var request = served.posting("v1/completions", body);
                HttpResponse<String> answer =
                        served.send(key.isEmpty() ? request : request.header("Authorization", key));
                assertThat(answer.statusCode()).isEqualTo(401);
                assertThat(answer.body()).contains("invalid_api_key").doesNotContain("horse");
            }
            assertThat(served.get("v1/models").statusCode()).isEqualTo(401);
            assertThat(served.get("metrics").statusCode()).isEqualTo(401);
            assertThat(served.get("health").statusCode()).isEqualTo(200);
            for (String right : new String[] {"Bearer correct-horse", "bearer correct-horse"}) {
                var request = served.posting("v1/completions", body).header("Authorization", right);
                assertThat(served.send(request).statusCode()).as(right).isEqualTo(200);
            }
        }
    }

    @Test
    void halfACharacterIsNoText() throws IOException {
        try (ServedRun served = ServedRun.withKey(folder, "correct-horse")) {
            HttpResponse<String> answer =
                    served.send(
                            served.posting("v1/completions", "{\"prompt\":\"a\\ud800\"}")
                                    .header("Authorization", "Bearer correct-horse"));

            assertThat(answer.statusCode()).isEqualTo(400);
            assertThat(answer.body())
                    .contains("prompt: expected Unicode, got half a surrogate pair");
        }
    }

    @Test
    void thousandsOfSilentConnectionsKeepNobodyOut() throws IOException {
        List<Socket> silent = new ArrayList<>();
        try (ServedRun served = ServedRun.withKey(folder, "correct-horse")) {
            URI address = URI.create(served.server.url());
            for (int i = 0; i < 2_000; i++) {
                silent.add(new Socket(address.getHost(), address.getPort()));
            }

            assertThat(served.get("health").statusCode()).isEqualTo(200);
        } finally {
            for (Socket each : silent) {
                each.close();
            }
        }
    }

    @Test
    void aFullQueueRefusesAndTheEndIsSaidToThoseWhoWait() throws IOException {
        ServedRun served = ServedRun.start(folder, 1, new JoiningTexts.Limits(1, 1, 100_000));
        try (ExecutorService clients = Executors.newFixedThreadPool(2)) {
            var growing =
                    CompletableFuture.supplyAsync(
                            () -> served.post("v1/completions", LONG.formatted(true)), clients);
            await().atMost(Duration.ofSeconds(60)).until(() -> served.texts.growing() == 1);
            var waiting =
                    CompletableFuture.supplyAsync(
                            () -> served.post("v1/completions", LONG.formatted(false)), clients);
            await().atMost(Duration.ofSeconds(60)).until(() -> served.texts.waiting() == 1);

            HttpResponse<String> third = served.post("v1/completions", LONG.formatted(false));
            served.close();

            assertThat(third.statusCode()).isEqualTo(429);
            assertThat(third.headers().firstValue("Retry-After")).contains("1");
            assertThat(third.body()).contains("rate_limit_exceeded");
            assertThat(growing.join().body()).contains("data: {\"error\":", "server_ending");
            assertThat(waiting.join().body()).contains("server_ending");
        }
    }
}
