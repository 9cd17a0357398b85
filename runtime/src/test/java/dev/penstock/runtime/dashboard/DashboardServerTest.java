package dev.penstock.runtime.dashboard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.events.RunEventLines;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What is served, and to whom. */
@Timeout(60)
class DashboardServerTest {
    @TempDir private Path folder;
    private RunDirectory directory;
    private DashboardServer server;

    @BeforeEach
    void start() throws IOException {
        directory = new RunDirectory(folder);
        server = DashboardServer.start(directory, 0);
    }

    @AfterEach
    void stop() {
        server.close();
    }

    @Test
    void aPageOfAnotherNameIsRefused() throws IOException {
        for (String foreign :
                List.of(
                        "penstock.example:" + port(),
                        "127.0.0.1.example:" + port(),
                        "localhost.example",
                        "localhost@penstock.example",
                        "")) {
            assertThat(answer("GET / HTTP/1.1", foreign)).as(foreign).startsWith("HTTP/1.1 421");
        }
    }

    /** As {@code ssh -L 8080:127.0.0.1:PORT} makes one. */
    @Test
    void aTunnelFromAnotherPortLeadsHere() throws IOException {
        for (String own : List.of(own(), "127.0.0.1:8080", "localhost:8080", "localhost")) {
            assertThat(answer("GET / HTTP/1.1", own)).as(own).startsWith("HTTP/1.1 200");
        }
    }

    @Test
    void nothingCanBeChanged() throws IOException {
        for (String method : List.of("POST", "PUT", "DELETE")) {
            assertThat(answer(method + " /api/facts HTTP/1.1", own())).startsWith("HTTP/1.1 405");
        }
    }

    @Test
    void pathsLeadNowhereElse() throws IOException {
        for (String path :
                List.of("/../events.jsonl", "/%2e%2e/x", "/uplot/LICENSE", "/api", "/index.html")) {
            assertThat(answer("GET " + path + " HTTP/1.1", own()))
                    .as(path)
                    .startsWith("HTTP/1.1 40");
        }
    }

    @Test
    void theScriptsAndNothingForeignMayBeLoaded() throws IOException {
        String page = answer("GET / HTTP/1.1", own());

        assertThat(page).containsIgnoringCase("Content-Security-Policy: default-src 'none'");
        for (String name :
                List.of("dashboard.js", "gantt.js", "dashboard.css", "uplot.js", "uplot.css")) {
            assertThat(answer("GET /" + name + " HTTP/1.1", own()))
                    .as(name)
                    .startsWith("HTTP/1.1 200");
        }
    }

    @Test
    void thePageHoldsTheFirstStateAsDataAndNeverAsMarkup() throws IOException {
        RunEventLines.append(directory.events(), began("</script><b>evil</b>"));
        await().untilAsserted(
                        () ->
                                assertThat(answer("GET / HTTP/1.1", own()))
                                        .contains("\\u003c/script>\\u003cb>evil")
                                        .doesNotContain("</script><b>evil"));
    }

    @Test
    void lossesOfRunsBesideItAreServedAndNoOtherFile() throws IOException {
        Path runs = folder.resolve("runs");
        Path other = Files.createDirectories(runs.resolve("other run"));
        Files.createDirectories(runs.resolve("no run"));
        Files.writeString(folder.resolve("metrics.jsonl"), "not for anybody");
        writeSteps(new RunDirectory(other), 2.5, 2.25);
        var self = new RunDirectory(Files.createDirectories(runs.resolve("self")));
        writeSteps(self, 3.5);
        try (DashboardServer shown = DashboardServer.start(self, 0)) {
            assertThat(answer(shown, "GET /api/runs HTTP/1.1", own())).endsWith("[\"other run\"]");
            assertThat(answer(shown, "GET /api/loss?run=other%20run HTTP/1.1", own()))
                    .endsWith("{\"steps\":[1.0,2.0],\"losses\":[2.5,2.25]}");
            for (String name : List.of("..", "no%20run", "self/../..", "%2e%2e", "")) {
                assertThat(answer(shown, "GET /api/loss?run=" + name + " HTTP/1.1", own()))
                        .as(name)
                        .startsWith("HTTP/1.1 404");
            }
        }
    }

    @Test
    void theReportAndTheTraceAreServedOnceTheyAreThere() throws IOException {
        assertThat(answer("GET /api/files HTTP/1.1", own())).endsWith("[]");
        assertThat(answer("GET /files/report.html HTTP/1.1", own())).startsWith("HTTP/1.1 404");

        Files.writeString(directory.report(), "<p>the report</p>");
        assertThat(answer("GET /api/files HTTP/1.1", own())).endsWith("[\"report.html\"]");
        assertThat(answer("GET /files/report.html HTTP/1.1", own()))
                .startsWith("HTTP/1.1 200")
                .contains("<p>the report</p>");
        assertThat(answer("GET /files/events.jsonl HTTP/1.1", own())).startsWith("HTTP/1.1 404");
    }

    @Test
    void beforeTheFirstLineNothingIsKnown() throws IOException {
        assertThat(answer("GET /api/facts HTTP/1.1", own())).startsWith("HTTP/1.1 404");
        assertThat(answer("GET /api/step HTTP/1.1", own())).startsWith("HTTP/1.1 404");
        assertThat(answer("GET /api/curves HTTP/1.1", own())).startsWith("HTTP/1.1 200");
    }

    @Test
    void aProgramThatCannotBeReadCostsThePictureOfTheSimulatedStepOnly() throws IOException {
        RunEventLines.append(
                directory.events(),
                new RunEvent.Began(
                        1,
                        1,
                        "x",
                        0,
                        5,
                        1,
                        1,
                        "rubbish",
                        RankGrid.pipeline(1),
                        List.of(),
                        "",
                        Map.of(),
                        ""),
                new RunEvent.OpTimes(
                        1,
                        1,
                        List.of(new RunEvent.OpTimes.Rank(new int[] {1}, new int[] {2}, 3, 4))));

        try (DashboardServer other = DashboardServer.start(directory, 0)) {
            JsonNode step;
            try (var in = URI.create(other.url() + "api/step?step=1").toURL().openStream()) {
                step = new ObjectMapper().readTree(in);
            }

            assertThat(step.path("step").asInt()).isEqualTo(1);
            assertThat(step.path("measured")).hasSize(1);
            assertThat(step.path("simulated")).isEmpty();
        }
    }

    @Test
    void prometheusReadsHowTheRunStands() throws IOException {
        RunEventLines.append(
                directory.events(),
                began("a \"run\""),
                new RunEvent.Stepped(
                        2,
                        3,
                        4.5,
                        1.5,
                        1e-3,
                        0,
                        500_000,
                        0.25,
                        0.2,
                        Map.of("forward", List.of(250_000L)),
                        List.of(1024L)),
                new RunEvent.Noted(3, RunEvent.Noted.Kind.STALL, "slow"));

        try (DashboardServer other = DashboardServer.start(directory, 0)) {
            String text;
            try (var in = URI.create(other.url() + "metrics").toURL().openStream()) {
                text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
            }

            assertThat(text)
                    .contains(
                            """
                            # TYPE penstock_loss gauge
                            penstock_loss{run="a \\"run\\""} 4.5
                            """)
                    .contains("penstock_tokens_per_second{run=\"a \\\"run\\\"\"} 128.0\n")
                    .contains("penstock_rank_activity_seconds{activity=\"forward\",rank=\"0\",run=")
                    .contains("penstock_stall_events_total{run=\"a \\\"run\\\"\"} 1.0\n");
        }
    }

    @Test
    void whoWatchesHearsHowTheRunEnded() throws IOException {
        try (Socket socket = ask("GET /api/stream HTTP/1.1", own());
                var lines =
                        new BufferedReader(
                                new InputStreamReader(
                                        socket.getInputStream(), StandardCharsets.UTF_8))) {
            assertThat(next(lines)).contains("\"state\":\"running\"");

            RunEventLines.append(
                    directory.events(),
                    new RunEvent.Ended(1, RunEvent.Ended.Outcome.FAILED, 3, "no room"));
            server.close();

            assertThat(lines.lines().toList())
                    .anyMatch(
                            line ->
                                    line.contains("\"state\":\"failed\"")
                                            && line.contains("no room"));
        }
    }

    /** The head at once, then what is new, also across the end of a viewer before. */
    @Test
    void whatIsNewComesByItself() throws IOException {
        for (int viewer = 0; viewer < 3; viewer++) {
            try (Socket socket = ask("GET /api/stream HTTP/1.1", own());
                    var lines =
                            new BufferedReader(
                                    new InputStreamReader(
                                            socket.getInputStream(), StandardCharsets.UTF_8))) {
                assertThat(next(lines)).contains("\"head\"");
                RunEventLines.append(
                        directory.events(),
                        new RunEvent.Noted(1, RunEvent.Noted.Kind.STALL, "news " + viewer));
                String expected = "news " + viewer;
                String line = next(lines);
                while (!line.contains(expected) && !line.contains("\"reload\":true")) {
                    line = next(lines);
                }
            }
        }
    }

    private static RunEvent.Began began(String name) {
        return new RunEvent.Began(
                1, 1, name, 0, 5, 64, 1, "", RankGrid.pipeline(1), List.of(), "", Map.of(), "");
    }

    private static void writeSteps(RunDirectory run, double... losses) throws IOException {
        var lines = new StringBuilder();
        for (int i = 0; i < losses.length; i++) {
            lines.append(
                    "{\"type\":\"step\",\"step\":%d,\"time\":\"2026-01-01T00:00:00Z\",\"layout\":\"x\",\"loss\":%s,\"lossBits\":\"%016x\"}%n"
                            .formatted(i + 1, losses[i], Double.doubleToRawLongBits(losses[i])));
        }
        Files.writeString(run.metrics(), lines);
    }

    private static String next(BufferedReader lines) throws IOException {
        String line = lines.readLine();
        while (line != null && !line.startsWith("data: ")) {
            line = lines.readLine();
        }
        assertThat(line).as("the stream goes on").isNotNull();
        return line;
    }

    private String answer(String request, String host) throws IOException {
        return answer(server, request, host);
    }

    private static String answer(DashboardServer asked, String request, String host)
            throws IOException {
        try (Socket socket = ask(asked, request, host)) {
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private Socket ask(String request, String host) throws IOException {
        return ask(server, request, host);
    }

    private static Socket ask(DashboardServer asked, String request, String host)
            throws IOException {
        Socket socket =
                new Socket(InetAddress.getLoopbackAddress(), URI.create(asked.url()).getPort());
        socket.getOutputStream()
                .write(
                        "%s\r\nHost: %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                                .formatted(request, host)
                                .getBytes(StandardCharsets.US_ASCII));
        return socket;
    }

    private String own() {
        return "127.0.0.1:" + port();
    }

    private int port() {
        return URI.create(server.url()).getPort();
    }
}
