package dev.penstock.runtime.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.ForkedJava;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Commands runs, stop and prune with runs of this machine. */
class LocalRunCommandsTest {
    private static final Duration LIMIT = Duration.ofMinutes(2);

    @TempDir Path folder;

    @Test
    void aRunIsListedAsRunningThenStoppedByItsDirectoryAndGoesOnLater() throws Exception {
        Training training = Training.onText(folder).set("run.steps=100000", "evaluation.every=0");
        Path directory = training.directory();
        Process process = start(training);
        try {
            await().atMost(LIMIT).until(() -> Trained.steps(directory) >= 3);

            JsonNode running = listed(directory);
            Cli pruned = Cli.run("prune", directory.toString(), "--whole", "--yes");
            Cli stopped = Cli.run("stop", directory.toString());

            assertThat(running.get("state").asText()).isEqualTo("running");
            assertThat(running.get("process").asLong()).isEqualTo(process.pid());
            assertThat(running.get("step").asLong()).isBetween(2L, 99_999L);
            assertThat(running.get("steps").asLong()).isEqualTo(100_000);
            assertThat(pruned.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(pruned.err())
                    .contains("expected a run that has ended", "which process " + process.pid())
                    .contains("penstock stop " + directory);
            assertThat(stopped.exitCode()).as(stopped.err()).isEqualTo(ExitCode.OK);
            assertThat(stopped.out()).contains("process " + process.pid() + " was asked to");
            assertThat(process.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).isEqualTo(ExitCode.INTERRUPTED);
        } finally {
            process.destroyForcibly();
        }
        long step = Trained.lossBits(directory).size();
        JsonNode ended = listed(directory);
        assertThat(ended.get("state").asText()).isEqualTo("interrupted");
        assertThat(ended.get("step").asLong()).isEqualTo(step);
        assertThat(ended.get("process").isNull()).isTrue();
        assertThat(directory.resolve("checkpoints/step-%06d".formatted(step))).isDirectory();

        assertThat(output(training))
                .content()
                .contains("saved after step %d; to go on:".formatted(step))
                .contains(
                        "  penstock train %s --set run.steps=100000"
                                .formatted(training.configuration()))
                .contains(" --run-dir %s --resume".formatted(directory));

        Cli again = Cli.run("stop", directory.toString());
        assertThat(again.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(again.err()).contains("expected a run that a process trains", "--resume");
    }

    @Test
    void aKilledRunIsListedAsStopped() throws Exception {
        Training training = Training.onText(folder).set("run.steps=100000");
        Process process = start(training);
        await().atMost(LIMIT).until(() -> Trained.steps(training.directory()) >= 3);

        process.destroyForcibly().waitFor();

        assertThat(listed(training.directory()).get("state").asText()).isEqualTo("stopped");
        Cli pruned = Cli.run("prune", training.directory().toString());
        assertThat(pruned.err()).contains("expected a complete run", "stopped after step");
    }

    @Test
    void runsAreListedWithStateStepLossAndSizeTheNewestFirst() throws IOException {
        Trained complete = Training.onText(folder.resolve("a")).complete();
        Training.onText(folder.resolve("b"))
                .set("optimizer={learning-rate=1e30, warmup-steps=0, clip-norm=0}")
                .run();
        Path runs = Files.createDirectory(folder.resolve("runs"));
        Files.move(complete.directory(), runs.resolve("good"));
        Files.move(folder.resolve("b/run"), runs.resolve("bad"));
        Files.createDirectory(runs.resolve("no-run"));
        Files.createSymbolicLink(runs.resolve("link"), runs.resolve("good"));

        Cli listed = Cli.run("runs", runs.toString());
        JsonNode rows =
                new ObjectMapper().readTree(Cli.run("runs", runs.toString(), "--json").out());

        assertThat(listed.exitCode()).as(listed.err()).isEqualTo(ExitCode.OK);
        assertThat(listed.out().lines().toList())
                .satisfiesExactly(
                        head -> assertThat(head).matches("run +state +step +loss +size +age"),
                        bad -> assertThat(bad).matches(".*/bad +failed +\\d+ of 12 .*"),
                        good ->
                                assertThat(good)
                                        .matches(
                                                ".*/good +complete +12 of 12 +\\d\\.\\d{4} .* MiB +\\d+ s"));
        JsonNode good = rows.get(1);
        assertThat(good.get("loss").asDouble()).isEqualTo(lastLoss(runs.resolve("good")));
        assertThat(good.get("bytes").asLong()).isEqualTo(bytes(runs.resolve("good")));
        assertThat(good.get("name").asText()).isEqualTo("tiny");
    }

    @Test
    void placesWithoutRunsAreToldApartFromNoPlaces() throws IOException {
        Path empty = Files.createDirectory(folder.resolve("empty"));

        assertThat(Cli.run("runs", empty.toString()).out()).contains("no runs in " + empty);
        assertThat(Cli.run("runs", empty.toString(), "--json").out().strip()).isEqualTo("[ ]");
        Cli nowhere = Cli.run("runs", folder.resolve("nowhere").toString());
        assertThat(nowhere.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(nowhere.err()).contains("FOLDER", "no such file");
        assertThat(Cli.run("runs", "x", "--cluster", "127.0.0.1:1").err())
                .contains("FOLDER and --cluster");
        assertThat(Cli.run("stop", empty.toString()).err())
                .contains("expected the directory of a run of this machine", "--cluster HOST:PORT");
    }

    @Test
    void pruneShowsWhatItWouldRemoveAndKeepsTheNewestCheckpoint() throws IOException {
        Path run = Training.onText(folder).complete().directory();
        Path crashed = Files.createDirectory(run.resolve("checkpoints/step-000008.incomplete"));
        Path elsewhere = Files.createDirectories(folder.resolve("precious/step-000001"));
        Path file = Files.writeString(elsewhere.resolve("file"), "kept");
        Path link = run.resolve("checkpoints/step-000001");
        Files.createSymbolicLink(link, elsewhere);

        Cli shown = Cli.run("prune", run.toString());
        Cli dry = Cli.run("prune", run.toString(), "--dry-run");

        assertThat(shown.out())
                .contains("would remove checkpoints/step-000008", "would stay: step-000012")
                .contains("nothing was removed; --yes");
        assertThat(dry.out()).isEqualTo(shown.out());
        JsonNode answer =
                new ObjectMapper().readTree(Cli.run("prune", run.toString(), "--json").out());
        assertThat(answer.get("removed").asBoolean()).isFalse();
        assertThat(answer.get("bytes").asLong()).isPositive();
        assertThat(answer.at("/runs/0/run").asText()).isEqualTo(run.toString());
        assertThat(answer.at("/runs/0/goes").toString()).contains("checkpoints/step-000008");
        assertThat(answer.at("/runs/0/stays/0").asText()).startsWith("step-000012");
        assertThat(run.resolve("checkpoints/step-000004")).isDirectory();

        Cli done = Cli.run("prune", run.toString(), "--yes");

        assertThat(done.exitCode()).as(done.err()).isEqualTo(ExitCode.OK);
        assertThat(run.resolve("checkpoints/step-000012")).isDirectory();
        assertThat(run.resolve("checkpoints/step-000004")).doesNotExist();
        assertThat(run.resolve("checkpoints/step-000008")).doesNotExist();
        assertThat(crashed).doesNotExist();
        assertThat(link).isSymbolicLink();
        assertThat(file).hasContent("kept");
        Path kept = run.resolve("checkpoints/step-000012");
        assertThat(Cli.run("checkpoint", "verify", kept.toString()).exitCode()).isZero();
        assertThat(listed(run).get("state").asText()).isEqualTo("complete");
    }

    @Test
    void anOlderCheckpointStaysWhereTheNewestIsDamaged() throws IOException {
        Path run = Training.onText(folder).complete().directory();
        Path damaged = run.resolve("checkpoints/step-000012/stage-0.safetensors");
        byte[] bytes = Files.readAllBytes(damaged);
        bytes[bytes.length - 1] ^= 1;
        Files.write(damaged, bytes);

        Cli done = Cli.run("prune", run.toString(), "--yes");

        assertThat(done.err()).contains("step-000012", "damaged");
        assertThat(done.out()).contains("stays: step-000008");
        assertThat(run.resolve("checkpoints/step-000008")).isDirectory();
        assertThat(damaged).exists();
        assertThat(run.resolve("checkpoints/step-000004")).doesNotExist();
    }

    @Test
    void pruneWholeRemovesWhatTheRunWroteAndNothingElse() throws IOException {
        Path all = Training.onText(folder.resolve("a")).complete().directory();
        Path some = Training.onText(folder.resolve("b")).complete().directory();
        Path notes = Files.writeString(some.resolve("notes.md"), "mine");
        Path outside = Files.writeString(folder.resolve("outside.txt"), "mine");
        Files.createSymbolicLink(some.resolve("link"), outside);

        Cli dry = Cli.run("prune", all.toString(), some.toString(), "--whole");
        Cli done = Cli.run("prune", all.toString(), some.toString(), "--whole", "--yes");

        assertThat(dry.out()).contains("would remove everything", "would stay: link, notes.md");
        assertThat(done.exitCode()).as(done.err()).isEqualTo(ExitCode.OK);
        assertThat(all).doesNotExist();
        assertThat(notes).hasContent("mine");
        assertThat(outside).hasContent("mine");
        assertThat(some.resolve("link")).isSymbolicLink();
        try (Stream<Path> left = Files.list(some)) {
            assertThat(left.map(path -> path.getFileName().toString()))
                    .containsExactlyInAnyOrder("link", "notes.md", "checkpoints", "run.lock");
        }
    }

    @Test
    void whatIsNoRunIsNeverPrunedAndAllProblemsAreToldAtOnce() throws IOException {
        Path run = Training.onText(folder).set("run.steps=1").complete().directory();
        Path link = Files.createSymbolicLink(folder.resolve("link"), run);
        Path other = Files.createDirectory(folder.resolve("other"));
        Files.writeString(other.resolve("notes.md"), "mine");

        Cli refused =
                Cli.run(
                        "prune",
                        run.toString(),
                        link.toString(),
                        other.toString(),
                        "--whole",
                        "--yes",
                        "--dry-run");

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("3 problems", "--dry-run and --yes", "link, a symbolic link")
                .contains(other.toString());
        assertThat(run.resolve("resolved.conf")).exists();
        assertThat(other.resolve("notes.md")).exists();
    }

    private static Process start(Training training) throws IOException {
        // what computes is not the point, and plain code is ready sooner in a process that is young
        List<String> command = new ArrayList<>(ForkedJava.command("-XX:TieredStopAtLevel=1"));
        command.addAll(training.copy().set("device.kind=reference").arguments());
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output(training).toFile())
                .start();
    }

    private static Path output(Training training) {
        return training.configuration().resolveSibling("output.txt");
    }

    private static JsonNode listed(Path run) throws IOException {
        JsonNode rows =
                new ObjectMapper().readTree(Cli.run("runs", run.toString(), "--json").out());
        assertThat(rows).hasSize(1);
        return rows.get(0);
    }

    private static double lastLoss(Path run) {
        return new Trained(run, 0, "", "").losses().getLast();
    }

    private static long bytes(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            long bytes = 0;
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                bytes += Files.size(file);
            }
            return bytes;
        }
    }
}
