package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.RunningTraining;
import dev.penstock.systemtests.support.SteadyTraining;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * Stage processes with mirrors, too many of which are killed: no bit of the loss changes. {@link
 * GridFaultsIT} shows that a mirror takes over from a process that is killed, {@link
 * DeathsInOneJvmIT} in which phases of a step.
 */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
class MirrorRecoveryIT {
    private static final Duration LIMIT = Duration.ofSeconds(90);

    private static final String[] THREE_STAGES = {
        "model.layers=3", "pipeline.stages=3", "evaluation.every=0", ForkedCli.PLAIN_CODE
    };

    @TempDir Path folder;

    @Test
    void twoNeighboursThatDieTogetherSendTheRunBackToTheCheckpoint() throws Exception {
        Training training =
                SteadyTraining.on(folder.resolve("killed"))
                        .set(THREE_STAGES)
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
            assertThat(ended.lossBits()).isEqualTo(SteadyTraining.calmBits(ended, THREE_STAGES));
            assertThat(ended.recoveries().getLast().get("restart").asText())
                    .isEqualTo("checkpoint");
        }
    }
}
