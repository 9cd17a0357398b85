package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.Leftovers;
import dev.penstock.systemtests.support.RunningTraining;
import dev.penstock.systemtests.support.SteadyTraining;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * A host's media driver dies by kill -9, twice: another one is started, the ranks open their
 * streams again, and nothing is lost.
 */
@EnabledOnOs(OS.LINUX)
class KilledDriverIT {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    @TempDir Path folder;

    @Test
    void theSameProcessesContinueWithTheSameBits() throws Exception {
        String name = "dead_driver_" + ProcessHandle.current().pid();
        Training training =
                SteadyTraining.on(folder.resolve("harmed"))
                        .set("run.name=" + name, "pipeline.processes=per-stage");
        Trained ended;

        try (RunningTraining run = RunningTraining.host(training).awaitSteps(12)) {
            List<ProcessHandle> stages = List.of(run.ofRank(0), run.ofRank(1));
            for (int kill = 1; kill <= 2; kill++) {
                run.driver().destroyForcibly();
                awaitRecoveries(training, kill);
                run.awaitSteps(Trained.lossBits(training.directory()).size() + 10);
            }
            assertThat(stages).allMatch(ProcessHandle::isAlive);
            assertThat(Leftovers.sharedMemory(name)).as("of the driver that lives").hasSize(1);
            run.interrupt();
            ended = run.awaitEnd(LIMIT);
        }

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
        assertThat(ended.lossBits()).isEqualTo(SteadyTraining.calmBits(ended));
        assertThat(ended.recoveries())
                .hasSize(2)
                .allSatisfy(
                        recovery -> {
                            assertThat(recovery.get("cause").asText()).contains("media driver");
                            assertThat(recovery.get("restart").asText()).isEqualTo("memory");
                            assertThat(recovery.get("stepsLost").asLong()).isZero();
                            assertThat(recovery.get("replaced")).isEmpty();
                        });
        assertThat(Leftovers.sharedMemory(name)).isEmpty();
    }

    private static void awaitRecoveries(Training training, int wanted) {
        await().atMost(LIMIT)
                .until(() -> Trained.recoveries(training.directory()).size() >= wanted);
    }
}
