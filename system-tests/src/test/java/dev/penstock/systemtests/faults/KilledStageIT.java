package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.RunningTraining;
import dev.penstock.systemtests.support.SteadyTraining;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * A stage's process dies by kill -9: the run continues with the same losses, bit for bit. {@link
 * DeathsInOneJvmIT} shows the same of every phase of a step.
 */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class KilledStageIT {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    @TempDir Path folder;

    /**
     * One run for three claims. It has been evaluated meanwhile: an evaluation has its own
     * processes, and the run's new processes must not confuse them with theirs. Its newest
     * checkpoint is damaged as a disk does it, which nobody notices before the file is read: the
     * run goes back to the one before. A spare process takes the dead one's place, and another
     * spare one is started.
     */
    @Test
    void aSpareTakesTheDeadOnesPlaceAndTheRunGoesBackBehindADamagedCheckpoint() throws Exception {
        Training training =
                SteadyTraining.on(folder.resolve("harmed"))
                        .set("pipeline.processes=per-stage", "recovery.spares=1")
                        .set("checkpoint.every=15");
        Trained ended;
        int damaged;
        String log;

        try (RunningTraining run = RunningTraining.host(training).awaitSteps(17)) {
            expectAnEvaluationToLeaveTheJournalAlone(run, training);
            await("a spare process").atMost(LIMIT).until(() -> !spares(run, -1).isEmpty());
            run.awaitSteps(32);
            damaged = newestCheckpoint(training.directory());
            assertThat(damaged).isGreaterThan(15);
            flipABitOfTheLastTensor(firstStage(training.directory(), damaged));
            RunningTraining.signal("KILL", run.ofRank(1));
            await("rank 1 in the spare process")
                    .atMost(LIMIT)
                    .until(() -> !spares(run, 1).isEmpty());
            await().atMost(LIMIT).until(() -> !Trained.recoveries(training.directory()).isEmpty());
            await("another spare process").atMost(LIMIT).until(() -> spares(run, -1).size() > 1);
            run.interrupt();
            ended = run.awaitEnd(LIMIT);
            log = run.log("log.txt");
        }

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
        assertThat(log)
                .contains(
                        firstStage(training.directory(), damaged) + ": damaged: expected SHA-256");
        assertThat(ended.out()).contains("from the checkpoint of step " + (damaged - 15));
        assertThat(ended.lossBits()).isEqualTo(SteadyTraining.calmBits(ended));
    }

    private static void expectAnEvaluationToLeaveTheJournalAlone(
            RunningTraining run, Training training) {
        String journal = run.log("journal.txt");
        Cli evaluated = Cli.run("evaluate", training.directory().toString());
        assertThat(evaluated.exitCode()).as(evaluated.err()).isEqualTo(ExitCode.OK);
        assertThat(run.log("journal.txt").substring(journal.length()).lines())
                .as("records of the evaluation")
                .noneMatch(line -> line.contains("began") || line.contains("ended"));
    }

    /** Those processes that were started as spare ones in which the event log saw the rank. */
    private static Set<String> spares(RunningTraining run, int rank) {
        return Pattern.compile(
                        "\"rank\":%d,\"node\":\"spare process\",\"pid\":(\\d+)".formatted(rank))
                .matcher(run.log("events.jsonl"))
                .results()
                .map(member -> member.group(1))
                .collect(Collectors.toSet());
    }

    /** By its name alone: the run goes on, and saves and removes others. */
    private static int newestCheckpoint(Path run) throws IOException {
        try (Stream<Path> folders = Files.list(run.resolve("checkpoints"))) {
            return folders.map(folder -> folder.getFileName().toString())
                    .filter(name -> name.matches("step-\\d{6}"))
                    .mapToInt(name -> Integer.parseInt(name.substring(5)))
                    .max()
                    .orElseThrow();
        }
    }

    private static Path firstStage(Path run, int step) {
        return run.resolve("checkpoints/step-%06d/stage-0.safetensors".formatted(step));
    }

    private static void flipABitOfTheLastTensor(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        bytes[bytes.length - 2] ^= 1;
        Files.write(file, bytes);
    }
}
