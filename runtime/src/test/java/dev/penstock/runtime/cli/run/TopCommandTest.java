package dev.penstock.runtime.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.dashboard.RunTop;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.events.RunEventLines;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Looking at runs from the terminal. */
class TopCommandTest {
    @TempDir private Path folder;

    @Test
    void aLogWithoutAWholeLineIsNoOldSign() throws IOException {
        Files.writeString(folder.resolve("events.jsonl"), "{\"type\":\"beg");

        Cli top = Cli.run("top", "--once", folder.toString());

        assertThat(top.exitCode()).as(top.err()).isZero();
        assertThat(top.out()).contains("running").doesNotContain("last sign");
    }

    @Test
    void ranksAndTheLastEventsAreShown() throws IOException {
        RunEventLines.append(
                folder.resolve("events.jsonl"),
                new RunEvent.Began(
                        1,
                        1,
                        "a\u001b[2Jrun",
                        0,
                        9,
                        64,
                        1000,
                        "",
                        RankGrid.pipeline(2),
                        List.of(2L << 20, 3L << 20),
                        "",
                        Map.of(),
                        ""),
                new RunEvent.Stepped(
                        2,
                        3,
                        4.5,
                        1,
                        1e-3,
                        0,
                        500_000,
                        0.25,
                        0.2,
                        Map.of(
                                "forward", List.of(100L, 100L),
                                "backward", List.of(200L, 100L),
                                "receive", List.of(100L, 200L)),
                        List.of(1L << 20, 1L << 20)),
                new RunEvent.Members(
                        2,
                        List.of(
                                new RunEvent.Members.Member(0, "node", 7, "0.1"),
                                new RunEvent.Members.Member(1, "node", 7, "0.1"))),
                new RunEvent.Leases(2, List.of(340L, 1_200L)),
                new RunEvent.Noted(3, RunEvent.Noted.Kind.STALL, "rank 1 waits for rank 0"));

        Cli top = Cli.run("top", folder.toString());

        assertThat(top.exitCode()).as(top.err()).isZero();
        assertThat(top.out())
                .contains("step 3 of 9  loss 4.5")
                .contains("128 tokens/s")
                .contains("bubble 25.0 % (predicted 20.0 %)")
                .containsPattern(
                        " 0 +75 % +0 % +25 % +0 % +1.0 MiB +2.0 MiB +0.3 s"
                                + " +\\[ffffffbbbbbbbbbbbb {6}]")
                .contains("running, health stalled")
                .containsPattern(" 1 +50 % +0 % +50 % ")
                .contains("stall: rank 1 waits for rank 0")
                .doesNotContain("\u001b");
    }

    @Test
    void aSmallScreenShowsWhatFits() throws IOException {
        int ranks = 40;
        List<Long> each = Collections.nCopies(ranks, 100L);
        RunEventLines.append(
                folder.resolve("events.jsonl"),
                new RunEvent.Began(
                        1,
                        1,
                        "run",
                        0,
                        9,
                        64,
                        1000,
                        "",
                        RankGrid.pipeline(ranks),
                        Collections.nCopies(ranks, 2L << 20),
                        "",
                        Map.of(),
                        ""),
                new RunEvent.Stepped(
                        2,
                        3,
                        4.5,
                        1,
                        1e-3,
                        0,
                        500_000,
                        0.25,
                        0.2,
                        Map.of("forward", each, "backward", each, "receive", each),
                        Collections.nCopies(ranks, 1L << 20)),
                new RunEvent.Noted(3, RunEvent.Noted.Kind.STALL, "rank 1 waits ".repeat(9)));
        var top = new RunTop(new RunDirectory(folder));

        List<String> lines = top.lines(4, 80, 23);

        assertThat(lines).hasSize(23).allSatisfy(line -> assertThat(line).hasSizeLessThan(81));
        assertThat(lines.get(4)).hasSize(80).endsWith("]");
        assertThat(lines.get(21)).contains("and 23 more ranks");
        assertThat(lines.getLast()).startsWith("  stall: rank 1 waits").endsWith("~");
        assertThat(top.lines(4, 20, 3)).allSatisfy(line -> assertThat(line).hasSizeLessThan(21));
        assertThat(top.lines(4)).hasSize(4 + ranks + 1);
    }

    @Test
    void aPortThatIsTakenOrNoneIsRefused() throws IOException {
        RunEventLines.append(
                folder.resolve("events.jsonl"), new RunEvent.Opened(1, List.of("cpu"), "kernels"));
        try (var taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            String port = String.valueOf(taken.getLocalPort());

            Cli refused = Cli.run("ui", folder.toString(), "--port", port);

            assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(refused.err())
                    .contains("--port", "a port that is free", port, "leave it out")
                    .doesNotContain("\tat ");
        }
        assertThat(Cli.run("ui", folder.toString(), "--port", "70000").err())
                .contains("0 to 65535", "70000");
    }

    @Test
    void aFolderWithoutARunIsRefused() throws IOException {
        Files.createDirectories(folder);
        for (String command : List.of("top", "ui")) {
            Cli refused = Cli.run(command, folder.toString());

            assertThat(refused.exitCode()).as(command).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(refused.err()).contains("RUN_DIR").contains("events.jsonl");
        }
        Cli refused = Cli.run("export", folder.toString(), "--as", "csv", "-o", folder.toString());
        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("RUN_DIR").contains("--output");
    }
}
