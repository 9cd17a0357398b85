package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.ForkedTraining;
import dev.penstock.systemtests.support.SteadyTraining;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A stage's process dies by kill -9: the run goes on, to the same losses, bit for bit. */
@EnabledOnOs(OS.LINUX)
class KilledStageIT {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    @TempDir static Path shared;
    @TempDir Path folder;

    private static List<String> losses;
    private static List<String> validation;

    @BeforeAll
    static void trainWithoutAnyDeath() {
        Trained whole = Training.onText(shared).complete();
        losses = whole.lossBits();
        validation = whole.validationBits();
    }

    /**
     * Two deaths in every run. Steps 6 and 10 are two steps after a checkpoint, step 2 is before
     * the first, step 8 saves one.
     */
    @ParameterizedTest(name = "{0}")
    @CsvSource(
            delimiter = '|',
            value = {
                "cool-down, warm-up    | 1 | op=1B3, step=2       | 1 | op=1F0, step=6",
                "steady, checkpoint    | 0 | op=0B1, step=6       | 0 | at=checkpoint, step=8",
                "ready, saved          | 1 | at=ready, step=6     | 1 | at=saved, step=8",
                "optimizer, updated    | 0 | at=optimizer, step=6 | 1 | at=updated, step=10"
            })
    void theLossesStayTheSame(String phases, int first, String at, int second, String later)
            throws Exception {
        Training training =
                perStage()
                        .set(
                                "fault=[{kill-rank=%d, %s}, {kill-rank=%d, %s}]"
                                        .formatted(first, at, second, later));

        Trained ended = run(training);

        assertThat(ended.exitCode()).as(phases + ended.out()).isEqualTo(ExitCode.OK);
        assertThat(ended.lossBits()).isEqualTo(losses);
        assertThat(ended.validationBits()).isEqualTo(validation);
        assertThat(ended.recoveries())
                .extracting(recovery -> recovery.get("cause").asText())
                .satisfiesExactly(
                        cause -> assertThat(cause).contains("rank " + first, "died"),
                        cause -> assertThat(cause).contains("rank " + second, "died"));
    }

    @Test
    void aSpareTakesTheDeadOnesPlace() throws Exception {
        Training training =
                perStage()
                        .set("recovery.spares=1")
                        .set(
                                "fault=[{kill-rank=1, op=1F2, step=7}, {kill-rank=0, op=0F1,"
                                        + " step=11}]");

        Trained ended = run(training);

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.OK);
        assertThat(ended.lossBits()).isEqualTo(losses);
    }

    @Test
    void whatDiesAgainAndAgainEndsTheRunWithAllCauses() throws Exception {
        Training training =
                perStage()
                        .set("recovery.max-restarts=1")
                        .set(
                                "fault=[{kill-rank=1, op=1F2, step=6}, {kill-rank=0, op=0F1,"
                                        + " step=7}]");

        Trained ended = run(training);

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(ended.out()).contains("rank 0", "rank 1", "recovery.max-restarts = 1");
    }

    /** What it began with is gone by then: the new process has to do without. */
    @Test
    void aResumedRunOutlivesTheCheckpointThatItBeganWith() throws Exception {
        String steady = "optimizer={learning-rate=5e-3, min-learning-rate=5e-3, warmup-steps=3}";
        Trained whole = Training.onText(folder.resolve("whole")).set(steady).complete();
        Training.onText(folder).set(steady, "run.steps=4").complete();
        Training training =
                perStage()
                        .set(steady, "checkpoint={every=2, retain=1}")
                        .set("fault=[{kill-rank=1, op=1F0, step=11}]")
                        .resume();

        Trained ended = run(training);

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.OK);
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
    }

    /** An evaluation has processes of its own; the run's new ones must not take it for theirs. */
    @Test
    void aRunThatIsEvaluatedMeanwhileRecoversAsBefore() throws Exception {
        Training training =
                SteadyTraining.on(folder.resolve("harmed")).set("pipeline.processes=per-stage");
        Trained ended;

        try (ForkedTraining run = ForkedTraining.start(training).awaitSteps(25)) {
            String journal = run.log("journal.txt");
            Cli evaluated = Cli.run("evaluate", training.directory().toString());
            assertThat(evaluated.exitCode()).as(evaluated.err()).isEqualTo(ExitCode.OK);
            assertThat(run.log("journal.txt").substring(journal.length()).lines())
                    .as("records of the evaluation")
                    .noneMatch(line -> line.contains("began") || line.contains("ended"));
            ForkedTraining.signal("KILL", run.ofRank(1));
            await().atMost(LIMIT).until(() -> !Trained.recoveries(training.directory()).isEmpty());
            run.signal("INT");
            ended = run.awaitEnd(LIMIT);
        }

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.INTERRUPTED);
        assertThat(ended.lossBits())
                .isEqualTo(SteadyTraining.calmBits(folder.resolve("calm"), ended));
    }

    private Training perStage() {
        return Training.onText(folder).set("pipeline.processes=per-stage");
    }

    private static Trained run(Training training) throws Exception {
        try (ForkedTraining run = ForkedTraining.start(training)) {
            return run.awaitEnd(LIMIT);
        }
    }
}
