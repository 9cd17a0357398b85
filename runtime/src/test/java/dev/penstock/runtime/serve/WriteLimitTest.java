package dev.penstock.runtime.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class WriteLimitTest {
    private static final Duration SHORT = Duration.ofMillis(300);

    @Test
    void aClientThatStopsReadingItsStreamLosesIt() throws Exception {
        var ended = new CompletableFuture<Throwable>();
        HttpServer server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1);
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            server.setExecutor(threads);
            server.createContext("/", exchange -> ended.complete(streamForEver(exchange)));
            server.start();
            try (var client = new Socket(InetAddress.getLoopbackAddress(), port(server))) {
                client.getOutputStream()
                        .write(
                                "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
                                        .getBytes(StandardCharsets.US_ASCII));

                assertThat(ended.get(60, TimeUnit.SECONDS)).isInstanceOf(IOException.class);
            }
        } finally {
            server.stop(0);
        }
    }

    private static int port(HttpServer server) {
        return server.getAddress().getPort();
    }

    private static Throwable streamForEver(HttpExchange exchange) {
        var answer = new ClientAnswer(exchange, true, new WriteLimit(SHORT));
        var event = JsonNodeFactory.instance.textNode("more ".repeat(1_000));
        try (exchange) {
            while (true) {
                answer.event(event);
            }
        } catch (IOException e) {
            return e;
        }
    }

    @Test
    void aWriteThatEndsInTimeLeavesItsThreadAlone() throws IOException {
        boolean[] written = new boolean[1];

        new WriteLimit(Duration.ofMinutes(1)).write(() -> written[0] = true);

        assertThat(written).containsExactly(true);
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
    }

    @Test
    void whatAWriteThrowsIsThrown() {
        assertThatThrownBy(
                        () ->
                                new WriteLimit(Duration.ofMinutes(1))
                                        .write(
                                                () -> {
                                                    throw new IOException("gone");
                                                }))
                .isInstanceOf(IOException.class)
                .hasMessage("gone");
    }
}
