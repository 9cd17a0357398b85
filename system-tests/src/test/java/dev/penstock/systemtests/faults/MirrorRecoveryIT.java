package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.CalmRuns;
import dev.penstock.systemtests.support.ForkedCli;
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
 * Four stage processes with mirrors, some of which are killed: no committed step is lost and no bit
 * of the loss changes.
 */
@EnabledOnOs(OS.LINUX)
class MirrorRecoveryIT {
    private static final Duration LIMIT = Duration.ofSeconds(90);

    private static final String[] FOUR_STAGES = {
        "model.layers=4", "pipeline.stages=4", "evaluation.every=0", ForkedCli.PLAIN_CODE
    };

    @TempDir Path folder;

    /**
     * One of the phases of {@link DeathsInOneJvmIT}: before and after some of the ranks applied the
     * step. The second death comes when one process already has two ranks.
     */
    @Test
    void deathsInTheMiddleOfACommitLoseNoCommittedStep() {
        List<String> bits = CalmRuns.onText(FOUR_STAGES).lossBits();

        Trained mirrored =
                training("mirrored")
                        .set("pipeline.processes=per-stage", "recovery.mirror=on")
                        .set(
                                "fault=[{kill-rank=1, step=4, at=optimizer}, {kill-rank=3, step=8,"
                                        + " at=updated}]")
                        .complete();

        assertThat(mirrored.lossBits()).isEqualTo(bits);
        assertThat(mirrored.recoveries())
                .hasSize(2)
                .allSatisfy(
                        recovery -> {
                            assertThat(recovery.get("restart").asText()).isEqualTo("mirror");
                            assertThat(recovery.get("stepsLost").asLong()).isZero();
                        });
    }

    @Test
    void twoNeighboursThatDieTogetherSendTheRunBackToTheCheckpoint() throws Exception {
        Training training =
                SteadyTraining.on(folder.resolve("killed"))
                        .set(FOUR_STAGES)
                        .set("pipeline.processes=per-stage", "recovery.mirror=on");

        try (RunningTraining run = RunningTraining.host(training).awaitSteps(12)) {
            ProcessHandle one = run.ofRank(1);
            ProcessHandle two = run.ofRank(2);
            one.destroyForcibly();
            two.destroyForcibly();
            await().atMost(LIMIT).until(() -> !Trained.recoveries(training.directory()).isEmpty());
            run.awaitSteps(Trained.steps(training.directory()) + 5);
            run.interrupt();
            Trained ended = run.awaitEnd(LIMIT);

            assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
            assertThat(ended.lossBits()).isEqualTo(SteadyTraining.calmBits(ended, FOUR_STAGES));
            assertThat(ended.recoveries().getLast().get("restart").asText())
                    .isEqualTo("checkpoint");
        }
    }

    private Training training(String name) {
        return Training.onText(folder.resolve(name)).set(FOUR_STAGES);
    }
}
