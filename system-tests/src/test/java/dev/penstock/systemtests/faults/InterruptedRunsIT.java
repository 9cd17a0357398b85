package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.Leftovers;
import dev.penstock.systemtests.support.RunningTraining;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Runs that are stopped on the way resume as if nothing had happened. */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
class InterruptedRunsIT {
    private static final int STEPS = 120;
    private static final Duration SOON = Duration.ofSeconds(30);
    private static final Duration SOON_AFTER_IT = Duration.ofSeconds(5);

    private static List<String> losses = List.of();
    private static List<String> validation = List.of();

    @TempDir Path folder;

    @BeforeAll
    static void runWithoutInterruption(@TempDir Path whole) {
        Trained uninterrupted = longRun(whole).complete();
        losses = uninterrupted.lossBits();
        validation = uninterrupted.validationBits();
        assertThat(losses).hasSize(STEPS);
    }

    /** {@link KilledSupervisorIT} shows it of a run with a process per stage. */
    @Test
    void aKilledRunOfOneProcessLeavesNoOtherAndResumesFromItsLastCheckpointWithTheSameBits()
            throws Exception {
        String name = "dead_run_" + ProcessHandle.current().pid();
        Training training = longRun(folder).set("run.name=" + name, "pipeline.processes=single");

        try (RunningTraining run = startSlowingDown(training, 50)) {
            List<ProcessHandle> family = run.family();
            assertThat(Leftovers.sharedMemory(name)).isNotEmpty();

            run.signal("KILL");

            Trained killed = run.awaitEnd(SOON);
            assertThat(killed.lossBits()).hasSizeLessThan(STEPS);
            await().atMost(SOON_AFTER_IT)
                    .until(() -> family.stream().noneMatch(ProcessHandle::isAlive));
            Leftovers.deleteSharedMemory(name); // no process was left to delete it
        }
        Trained resumed = training.option("--resume").complete();

        expectWhole(resumed);
    }

    /** {@link #aClosedTerminalDoesNotAffectARunAndAnInterruptStopsAllItsProcesses} has INT. */
    @Test
    void aTerminatedRunFinishesItsStepAndSavesAndResumes() throws Exception {
        Training training = longRun(folder);
        List<String> before;

        try (RunningTraining run = startSlowingDown(training, 30)) {
            run.signal("TERM");
            Trained stopped = run.awaitEnd(SOON);
            before = stopped.lossBits();
            assertThat(stopped.exitCode()).as(stopped.out()).isEqualTo(ExitCode.INTERRUPTED);
            assertThat(before).hasSizeLessThan(STEPS);
            assertThat(stopped.directory().resolve("report.html")).exists();
            assertThat(checkpointOf(stopped, before.size())).isDirectory();
        }
        Trained resumed = training.option("--resume").complete();

        assertThat(resumed.lossBits()).startsWith(before.toArray(String[]::new));
        expectWhole(resumed);
    }

    @Test
    void aSecondSignalEndsTheProcessAtOnce() throws Exception {
        Training training = longRun(folder);

        try (RunningTraining run = startSlowingDown(training, 30)) {
            run.signal("INT");
            run.signal("INT");
            Trained stopped = run.awaitEnd(SOON);
            assertThat(stopped.exitCode()).as(stopped.out()).isEqualTo(ExitCode.INTERRUPTED);
        }
    }

    @Test
    void aClosedTerminalDoesNotAffectARunAndAnInterruptStopsAllItsProcesses() throws Exception {
        Training training = longRun(folder).set("pipeline.processes=per-stage");
        List<String> before;

        try (RunningTraining run = startSlowingDown(training, 30)) {
            List<ProcessHandle> family = run.family();
            for (ProcessHandle process : family) {
                RunningTraining.signal("HUP", process);
            }
            run.awaitSteps(Trained.steps(training.directory()) + 5);
            assertThat(family).hasSize(4).allMatch(ProcessHandle::isAlive);
            run.signal("INT");
            Trained stopped = run.awaitEnd(SOON);
            before = stopped.lossBits();
            assertThat(stopped.exitCode()).as(stopped.out()).isEqualTo(ExitCode.INTERRUPTED);
            assertThat(stopped.recoveries()).isEmpty();
            assertThat(before).hasSizeLessThan(STEPS);
            assertThat(stopped.directory().resolve("report.html")).exists();
            assertThat(checkpointOf(stopped, before.size())).isDirectory();
            assertThat(family).noneMatch(ProcessHandle::isAlive);
        }
        Trained resumed = training.set("pipeline.processes=single").option("--resume").complete();

        assertThat(resumed.lossBits()).startsWith(before.toArray(String[]::new));
        expectWhole(resumed);
    }

    @Test
    void watchersAreNotifiedHowTheRunEnded() throws Exception {
        Training training = longRun(folder).set("run.steps=45", "report.dashboard=true");

        try (RunningTraining run = RunningTraining.host(slowingDown(training, 30)).awaitSteps(30)) {
            Matcher page = Pattern.compile("dashboard: (\\S+)").matcher(run.output());
            assertThat(page.find()).as(run.output()).isTrue();
            String told;
            try (InputStream stream =
                    URI.create(page.group(1) + "api/stream").toURL().openStream()) {
                told = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
            }

            assertThat(told).contains("\"state\":\"running\"").contains("\"state\":\"completed\"");
            assertThat(run.awaitEnd(SOON).exitCode()).isEqualTo(ExitCode.OK);
        }
    }

    private static void expectWhole(Trained resumed) {
        assertThat(resumed.lossBits()).isEqualTo(losses);
        assertThat(resumed.validationBits()).isEqualTo(validation);
        assertThat(Files.isDirectory(checkpointOf(resumed, STEPS))).isTrue();
    }

    private static Path checkpointOf(Trained trained, int step) {
        return trained.directory().resolve("checkpoints/step-%06d".formatted(step));
    }

    /**
     * Starts a training and waits until it has done these steps. The following steps are slowed
     * down, so that the run is far from its end when a signal arrives.
     */
    private static RunningTraining startSlowingDown(Training training, int steps)
            throws IOException {
        return RunningTraining.start(slowingDown(training, steps)).awaitSteps(steps);
    }

    private static Training slowingDown(Training training, int steps) {
        return training.copy()
                .set(
                        "fault=[{ delay-frames = 1, for = 30 ms, from-step = %d }]"
                                .formatted(steps + 1));
    }

    private static Training longRun(Path folder) {
        return Training.onText(folder)
                .set("run.steps=" + STEPS, "checkpoint.every=20", "evaluation.every=40")
                .set(ForkedCli.PLAIN_CODE);
    }
}
