package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.Leftovers;
import dev.penstock.systemtests.support.RunningTraining;
import dev.penstock.systemtests.support.SteadyTraining;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * What processes survive together: a host's media driver dies by kill -9, twice, so another one is
 * started and the ranks open their streams again; then a rank is suspended, for less than its
 * lease. Nothing is lost, and no rank is replaced.
 */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
class KilledDriverIT {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    @TempDir Path folder;

    /** Ranks that wait for the suspended one are reported long before it is given up. */
    @Test
    void theSameProcessesContinueWithTheSameBitsAndReportARankThatIsSuspended() throws Exception {
        String name = "dead_driver_" + ProcessHandle.current().pid();
        Training training =
                SteadyTraining.on(folder.resolve("harmed"))
                        .set("run.name=" + name, "pipeline.processes=per-stage")
                        .set("timeouts.lease=60 s");
        Trained ended;
        List<JsonNode> ofDrivers;

        try (RunningTraining run = RunningTraining.host(training).awaitSteps(12)) {
            List<ProcessHandle> stages = List.of(run.ofRank(0), run.ofRank(1));
            for (int kill = 1; kill <= 2; kill++) {
                run.driver().destroyForcibly();
                awaitRecoveries(training, kill);
                run.awaitSteps(Trained.lossBits(training.directory()).size() + 10);
            }
            assertThat(stages).allMatch(ProcessHandle::isAlive);
            assertThat(Leftovers.sharedMemory(name)).as("of the driver that lives").hasSize(1);
            ofDrivers = Trained.recoveries(training.directory());

            RunningTraining.signal("STOP", stages.get(1));
            await().atMost(Duration.ofSeconds(40)) // 4 s until the links break, and then 5 s
                    .until(() -> run.output().contains("has waited for rank 1 (node"));
            RunningTraining.signal("CONT", stages.get(1));
            awaitRecoveries(training, 3);
            run.awaitSteps(Trained.steps(training.directory()) + 5);
            assertThat(stages).allMatch(ProcessHandle::isAlive);
            run.interrupt();
            ended = run.awaitEnd(LIMIT);
        }

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
        assertThat(ended.lossBits()).isEqualTo(SteadyTraining.calmBits(ended));
        assertThat(ofDrivers)
                .hasSize(2)
                .allSatisfy(
                        recovery ->
                                assertThat(recovery.get("cause").asText())
                                        .contains("media driver"));
        assertThat(ended.recoveries())
                .allSatisfy(
                        recovery -> {
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
