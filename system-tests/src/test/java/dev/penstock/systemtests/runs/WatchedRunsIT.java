package dev.penstock.systemtests.runs;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.events.RunEventLines;
import dev.penstock.systemtests.support.ForkedCli;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** What runs report to those who watch them, and that watching does not disturb a run. */
@EnabledOnOs(OS.LINUX)
class WatchedRunsIT {
    @TempDir Path folder;

    @Test
    void aRunWhosePortIsTakenTrainsWithoutAPageAndReportsEverythingElse() throws Exception {
        Training training = Training.onText(folder);
        try (var taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            int port = taken.getLocalPort();

            Trained trained =
                    training.set("report.dashboard=true", "report.dashboard-port=" + port)
                            .complete();

            assertThat(trained.losses()).hasSize(12);
            assertThat(trained.out()).doesNotContain("dashboard:").contains("prediction  ");
            assertThat(Files.readString(training.directory().resolve("log.txt")))
                    .contains("no dashboard: cannot listen on 127.0.0.1:" + port);
        }
        List<String> events = Files.readAllLines(training.directory().resolve("events.jsonl"));
        assertThat(events)
                .anyMatch(
                        line ->
                                line.startsWith("{\"type\":\"members\"")
                                        && line.contains("\"rank\":1"))
                .anyMatch(line -> line.startsWith("{\"type\":\"leases\""))
                .anyMatch(
                        line ->
                                line.matches(
                                        "\\{\"type\":\"verified\".*\"step\":12,\"whole\":true.*"))
                .anyMatch(
                        line ->
                                line.startsWith("{\"type\":\"links\"")
                                        && line.contains("\"step\":12,"));
        assertThat(events.getLast()).startsWith("{\"type\":\"ended\"").contains("COMPLETED");
    }

    @Test
    void anInterruptEndsThePageOfARunEvenWhileItIsWatched() throws Exception {
        RunEventLines.append(
                folder.resolve("events.jsonl"), new RunEvent.Opened(1, List.of("cpu"), "kernels"));
        try (ForkedCli ui = ForkedCli.start("ui", folder.toString())) {
            String url = ui.awaitOutput("dashboard: (http\\S+/)");
            try (var watching = URI.create(url + "api/stream").toURL().openStream()) {
                assertThat(watching.read()).isEqualTo('d');

                ui.signal("INT");

                assertThat(ui.awaitEnd(Duration.ofSeconds(20))).isZero();
            }
        }
    }
}
