package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.Leftovers;
import dev.penstock.systemtests.support.RunningTraining;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * A stage's process dies and recovery is off: the run ends soon, names the stage, and leaves
 * nothing on the machine.
 */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
class DeadStageIT {
    private static final Duration LIMIT = Duration.ofSeconds(5);

    @TempDir Path folder;

    /** {@link DeathsInOneJvmIT} shows of other ranks that they are named as well. */
    @Test
    void aKilledStageEndsTheRunAndIsNamed() throws Exception {
        String name = "dead_stage_" + ProcessHandle.current().pid();
        Training training =
                Training.onText(folder)
                        .set(ForkedCli.PLAIN_CODE)
                        .set("run.name=" + name, "run.steps=1000000", "checkpoint.every=0")
                        .set("pipeline.processes=per-stage", "recovery.enabled=false");

        try (RunningTraining run = RunningTraining.start(training).awaitSteps(5)) {
            List<ProcessHandle> family = run.family();
            Set<Leftovers.Listening> sockets = Leftovers.listening(family);
            assertThat(family).as("the run, a media driver and two stages").hasSize(4);
            assertThat(Leftovers.sharedMemory(name)).isNotEmpty();
            assertThat(sockets).isNotEmpty();

            run.ofRank(0).destroyForcibly();
            Trained ended = run.awaitEnd(LIMIT);

            assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.FAILURE);
            assertThat(ended.out()).contains("rank 0", "signal 9").doesNotContain("\tat ");
            await().atMost(LIMIT).until(() -> family.stream().noneMatch(ProcessHandle::isAlive));
            assertThat(Leftovers.sharedMemory(name)).isEmpty();
            Leftovers.expectClosed(sockets);
        }
    }
}
