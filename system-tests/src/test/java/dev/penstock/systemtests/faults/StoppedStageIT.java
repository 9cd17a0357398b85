package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.RunningTraining;
import dev.penstock.systemtests.support.SteadyTraining;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A stage's process is suspended by SIGSTOP for longer than its lease of 3 s. Its silence does not
 * prove its death: the others continue without it only if they are the majority, and it is refused
 * when it wakes up. Shorter pauses are in {@link GridFaultsIT}, a longer lease in {@link
 * KilledDriverIT}.
 *
 * <p>Longer pauses take too long for every build: {@code -Dpenstock.long-pauses=true}.
 */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
class StoppedStageIT {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    @TempDir Path folder;

    @Test
    void theMajorityContinuesAndTheZombieIsRefused() throws Exception {
        expectToGoOnWithoutAZombie(Duration.ofSeconds(8), "on");
    }

    @Test
    void oneOfTwoIsNotAMajorityAndWaits() throws Exception {
        expectToWait(Duration.ofSeconds(15));
    }

    @ParameterizedTest
    @CsvSource({"15, off", "60, on", "60, off"})
    @EnabledIfSystemProperty(named = "penstock.long-pauses", matches = "true")
    void theMajorityReplacesARankThatIsSuspendedForLong(int seconds, String mirror)
            throws Exception {
        expectToGoOnWithoutAZombie(Duration.ofSeconds(seconds), mirror);
    }

    @ParameterizedTest
    @ValueSource(ints = {8, 60})
    @EnabledIfSystemProperty(named = "penstock.long-pauses", matches = "true")
    void oneOfTwoWaitsEvenForALongPause(int seconds) throws Exception {
        expectToWait(Duration.ofSeconds(seconds));
    }

    private void expectToGoOnWithoutAZombie(Duration pause, String mirror) throws Exception {
        Training training = perStage(3).set("model.layers=3", "recovery.mirror=" + mirror);
        Trained ended;

        try (RunningTraining run = RunningTraining.host(training).awaitSteps(12)) {
            ProcessHandle zombie = run.ofRank(1);
            long began = System.nanoTime();
            RunningTraining.signal("STOP", zombie);
            await("a recovery that replaces it")
                    .atMost(LIMIT)
                    .until(() -> !replacing(Trained.recoveries(training.directory())).isEmpty());
            run.awaitSteps(Trained.steps(training.directory()) + 5);
            await().atMost(LIMIT).until(() -> System.nanoTime() - began > pause.toNanos());
            RunningTraining.signal("CONT", zombie);
            await("the zombie's end").atMost(LIMIT).until(() -> !zombie.isAlive());
            run.awaitSteps(Trained.steps(training.directory()) + 5);
            run.interrupt();
            ended = run.awaitEnd(LIMIT);

            assertThat(run.log("log.txt"))
                    .containsPattern(
                            "(?s)process %d ended with exit code 4.*this process ends: .*"
                                            .formatted(zombie.pid())
                                    + "goes on in epoch \\d+ without rank 1");
        }

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
        assertThat(replacing(ended.recoveries())).hasSize(1);
        JsonNode recovery = replacing(ended.recoveries()).getFirst();
        assertThat(recovery.get("cause").asText()).contains("rank 1", "silent for");
        assertThat(ended.recoveries())
                .filteredOn(other -> other.get("replaced").isEmpty())
                .allMatch(other -> other.get("stepsLost").asLong() == 0);
        assertThat(recovery.get("replaced")).hasSize(1);
        assertThat(recovery.get("restart").asText())
                .isEqualTo(mirror.equals("on") ? "mirror" : "checkpoint");
        assertThat(ended.lossBits()).isEqualTo(calmBits(ended, 3));
    }

    private void expectToWait(Duration pause) throws Exception {
        Training training = perStage(2);
        Trained ended;

        try (RunningTraining run = RunningTraining.host(training).awaitSteps(12)) {
            List<ProcessHandle> family = run.started();
            ProcessHandle sleeper = run.ofRank(1);
            long began = System.nanoTime();
            RunningTraining.signal("STOP", sleeper);
            await().atMost(LIMIT).until(() -> System.nanoTime() - began > pause.toNanos());
            assertThat(run.output()).contains("parked for", "1 of 2 ranks", "rank 1");
            int before = Trained.steps(training.directory());
            RunningTraining.signal("CONT", sleeper);
            awaitRecovery(training);
            run.awaitSteps(before + 5);
            assertThat(family).as("no rank was replaced").allMatch(ProcessHandle::isAlive);
            run.interrupt();
            ended = run.awaitEnd(LIMIT);
        }

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
        assertThat(ended.recoveries())
                .allSatisfy(
                        recovery -> {
                            assertThat(recovery.get("restart").asText()).isEqualTo("memory");
                            assertThat(recovery.get("stepsLost").asLong()).isZero();
                        });
        assertThat(ended.lossBits()).isEqualTo(calmBits(ended, 2));
    }

    private Training perStage(int stages) {
        return SteadyTraining.on(folder.resolve("harmed"))
                .set("pipeline.processes=per-stage", "pipeline.stages=" + stages);
    }

    private List<String> calmBits(Trained harmed, int stages) {
        return SteadyTraining.calmBits(
                harmed, "model.layers=" + stages, "pipeline.stages=" + stages);
    }

    /**
     * Returns the recoveries that gave a rank another process; an overloaded machine may cause
     * others, but they cost no step.
     */
    private static List<JsonNode> replacing(List<JsonNode> recoveries) {
        return recoveries.stream().filter(one -> !one.get("replaced").isEmpty()).toList();
    }

    private static void awaitRecovery(Training training) {
        await("a recovery")
                .atMost(LIMIT)
                .until(() -> !Trained.recoveries(training.directory()).isEmpty());
    }
}
