package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.Leftovers;
import dev.penstock.systemtests.support.RunningTraining;
import dev.penstock.systemtests.support.SteadyTraining;
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
 * The process that started the others and decides for them dies by kill -9: nothing of the run is
 * left on the machine, and the run can be resumed.
 */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
class KilledSupervisorIT {
    private static final Duration SOON = Duration.ofSeconds(30);

    @TempDir Path folder;

    @Test
    void aKilledSupervisorLeavesNothingAndTheRunResumesWithTheSameBits() throws Exception {
        String name = "dead_supervisor_" + ProcessHandle.current().pid();
        Training training =
                SteadyTraining.on(folder.resolve("killed"))
                        .set("run.name=" + name, "run.steps=45")
                        .set("pipeline.processes=per-stage", "report.dashboard=true")
                        // slow, so that the run is far from its end after it has been looked at
                        .set("fault=[{ delay-frames = 1, for = 40 ms, from-step = 10 }]");

        try (RunningTraining run = RunningTraining.start(training).awaitSteps(15)) {
            List<ProcessHandle> family = run.family();
            Set<Leftovers.Listening> sockets = Leftovers.listening(family);
            assertThat(family).as("the run, a media driver and two stages").hasSize(4);
            assertThat(sockets)
                    .as("the supervisor's, one of each stage, and the dashboard's")
                    .hasSize(4);

            expectNoReportYet(training);

            run.signal("KILL");

            await().atMost(SOON).until(() -> family.stream().noneMatch(ProcessHandle::isAlive));
            assertThat(Leftovers.sharedMemory(name)).isEmpty();
            Leftovers.expectClosed(sockets);
            assertThat(Trained.lossBits(training.directory())).hasSizeBetween(15, 44);
            expectAReportFromItsLogs(training);
        }
        Trained ended = training.resume().set("fault=[]").run();

        assertThat(ended.exitCode()).as(ended.err()).isEqualTo(ExitCode.OK);
        assertThat(ended.out() + ended.err())
                .containsPattern("had been committed; (it is|they are) done again from checkpoint");
        assertThat(epochsOfStarts(training.directory())).containsExactly(1, 2);
        assertThat(ended.lossBits()).hasSize(45).isEqualTo(SteadyTraining.calmBits(ended));
        assertThat(Leftovers.sharedMemory(name)).isEmpty();
    }

    private void expectNoReportYet(Training training) throws Exception {
        Path page = folder.resolve("so-far.html");

        Cli refused = Cli.run("report", training.directory().toString());
        Cli soFar = Cli.run("report", training.directory().toString(), "--output", page.toString());

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("is still running");
        assertThat(soFar.exitCode()).as(soFar.err()).isZero();
        assertThat(page).content().contains("under way after step", "measured: step");
    }

    private static void expectAReportFromItsLogs(Training training) {
        Path run = training.directory();
        assertThat(run.resolve("report.html")).doesNotExist();

        Cli made = Cli.run("report", run.toString());

        assertThat(made.exitCode()).as(made.err()).isZero();
        assertThat(made.out())
                .contains("stopped without a final record (killed?) after step", "report.html");
        assertThat(run.resolve("report.html"))
                .content()
                .contains(
                        "stopped without a final record (killed?) after step",
                        "measured: step",
                        "Device memory");
        assertThat(run.resolve("profile.txt")).isNotEmptyFile();
    }

    private static List<Integer> epochsOfStarts(Path run) {
        return JournalFile.read(run.resolve(JournalFile.NAME)).stream()
                .filter(JournalRecord.Began.class::isInstance)
                .map(record -> ((JournalRecord.Began) record).epoch())
                .toList();
    }
}
