package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.CalmRuns;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.RunningTraining;
import dev.penstock.systemtests.support.SteadyTraining;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * A stage's process dies by kill -9: the run continues with the same losses, bit for bit. {@link
 * DeathsInOneJvmIT} shows the same of every phase of a step.
 */
@EnabledOnOs(OS.LINUX)
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class KilledStageIT {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    @TempDir Path folder;

    /**
     * The checkpoint from which the run resumed is gone by then: the new process has to do without
     * it.
     */
    @Test
    void aResumedRunSurvivesADeathAfterItsFirstCheckpointIsGone() throws Exception {
        String steady = "optimizer={learning-rate=5e-3, min-learning-rate=5e-3, warmup-steps=3}";
        CalmRuns.CalmRun whole = CalmRuns.onText(steady, ForkedCli.PLAIN_CODE);
        Training.onText(folder).set(steady, "run.steps=4", ForkedCli.PLAIN_CODE).complete();
        Training training =
                perStage()
                        .set(steady, "checkpoint={every=2, retain=1}")
                        .set("fault=[{kill-rank=1, op=1F0, step=11}]")
                        .resume();

        Trained ended = training.run();

        assertThat(ended.exitCode()).as(ended.err()).isEqualTo(ExitCode.OK);
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
    }

    /**
     * An evaluation has its own processes; the run's new processes must not confuse them with
     * theirs.
     */
    @Test
    void aRunThatIsEvaluatedMeanwhileRecoversAsUsual() throws Exception {
        Training training =
                SteadyTraining.on(folder.resolve("harmed")).set("pipeline.processes=per-stage");
        Trained ended;

        try (RunningTraining run = RunningTraining.host(training).awaitSteps(12)) {
            String journal = run.log("journal.txt");
            Cli evaluated = Cli.run("evaluate", training.directory().toString());
            assertThat(evaluated.exitCode()).as(evaluated.err()).isEqualTo(ExitCode.OK);
            assertThat(run.log("journal.txt").substring(journal.length()).lines())
                    .as("records of the evaluation")
                    .noneMatch(line -> line.contains("began") || line.contains("ended"));
            RunningTraining.signal("KILL", run.ofRank(1));
            await().atMost(LIMIT).until(() -> !Trained.recoveries(training.directory()).isEmpty());
            run.interrupt();
            ended = run.awaitEnd(LIMIT);
        }

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
        assertThat(ended.lossBits()).isEqualTo(SteadyTraining.calmBits(ended));
    }

    @Test
    void aSpareProcessTakesTheDeadOnesPlace() throws Exception {
        Training training =
                SteadyTraining.on(folder.resolve("harmed"))
                        .set("pipeline.processes=per-stage", "recovery.spares=1");
        Trained ended;

        try (RunningTraining run = RunningTraining.host(training).awaitSteps(12)) {
            await("a spare process")
                    .atMost(LIMIT)
                    .until(() -> run.log("events.jsonl").contains(member(-1)));
            RunningTraining.signal("KILL", run.ofRank(1));
            await().atMost(LIMIT).until(() -> !Trained.recoveries(training.directory()).isEmpty());
            await("rank 1 in the spare process")
                    .atMost(LIMIT)
                    .until(() -> run.log("events.jsonl").contains(member(1)));
            run.interrupt();
            ended = run.awaitEnd(LIMIT);
        }

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
        assertThat(ended.lossBits()).isEqualTo(SteadyTraining.calmBits(ended));
    }

    /** What the event log says of the process that was started as a spare one. */
    private static String member(int rank) {
        return "\"rank\":%d,\"node\":\"spare process\"".formatted(rank);
    }

    /** As a disk does: nobody notices before the file is read. */
    @Test
    void aDeathAfterTheNewestCheckpointWasDamagedTakesTheRunToTheOneBefore() throws Exception {
        Training training =
                SteadyTraining.on(folder.resolve("harmed"))
                        .set("pipeline.processes=per-stage", "checkpoint.every=15");
        Trained ended;
        Path damaged = training.directory().resolve("checkpoints/step-000030/stage-0.safetensors");

        try (RunningTraining run = RunningTraining.start(training).awaitSteps(32)) {
            await().atMost(LIMIT).until(() -> Files.exists(damaged));
            flipABitOfTheLastTensor(damaged);
            RunningTraining.signal("KILL", run.ofRank(1));
            await().atMost(LIMIT).until(() -> !Trained.recoveries(training.directory()).isEmpty());
            run.interrupt();
            ended = run.awaitEnd(LIMIT);
        }

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
        assertThat(ended.out())
                .contains(damaged + ": damaged: expected SHA-256", "the checkpoint of step 15");
        assertThat(ended.lossBits()).isEqualTo(SteadyTraining.calmBits(ended));
    }

    private static void flipABitOfTheLastTensor(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        bytes[bytes.length - 2] ^= 1;
        Files.write(file, bytes);
    }

    private Training perStage() {
        return Training.onText(folder).set("pipeline.processes=per-stage", ForkedCli.PLAIN_CODE);
    }
}
