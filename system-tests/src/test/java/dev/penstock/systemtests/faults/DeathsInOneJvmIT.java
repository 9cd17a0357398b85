package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.launch.RanksInOneJvm;
import dev.penstock.systemtests.support.CalmRuns;
import dev.penstock.systemtests.support.GridTraining;
import dev.penstock.systemtests.support.TinyFamily;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Stage processes die at every phase of a step, and the run continues with the same losses, bit for
 * bit. The processes live in this JVM, since only the recovery is under test; {@link
 * KilledStageIT}, {@link MirrorRecoveryIT} and {@link GridFaultsIT} show that real ones die the
 * same way.
 */
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class DeathsInOneJvmIT {
    private static final String[] FOUR_STAGES = {
        "model.layers=4", "pipeline.stages=4", "evaluation.every=0"
    };

    @TempDir Path folder;

    // ---- back to the checkpoint -----------------------------------------------------------------

    /**
     * Every run has four deaths. Steps 6 and 10 are two steps after a checkpoint, step 2 is before
     * the first checkpoint, and step 8 saves one.
     */
    @ParameterizedTest
    @MethodSource("phases")
    void fourDeathsDoNotChangeTheLosses(List<Death> deaths) {
        Training training =
                Training.onText(folder).set("fault=" + deaths.stream().map(Death::fault).toList());

        Trained ended = RanksInOneJvm.run(training);

        assertThat(ended.exitCode()).as(ended.err()).isEqualTo(ExitCode.OK);
        assertThat(ended.lossBits()).isEqualTo(CalmRuns.onText().lossBits());
        assertThat(ended.validationBits()).isEqualTo(CalmRuns.onText().validationBits());
        assertThat(ended.recoveries())
                .extracting(recovery -> recovery.get("cause").asText())
                .zipSatisfy(
                        deaths,
                        (cause, death) -> assertThat(cause).contains("rank " + death.rank, "died"));
    }

    /**
     * The death of a process.
     *
     * @param rank that lives in it
     * @param at the point in the rank's program or in the step
     */
    record Death(int rank, int step, String at) {
        String fault() {
            return "{kill-rank=%d, step=%d, %s}".formatted(rank, step, at);
        }
    }

    static Stream<List<Death>> phases() {
        return Stream.of(
                List.of(
                        new Death(1, 2, "op=1B3"), // cool-down
                        new Death(1, 6, "op=1F0"), // warm-up
                        new Death(1, 6, "at=ready"),
                        new Death(1, 8, "at=saved")),
                List.of(
                        new Death(0, 6, "op=0B1"), // steady
                        new Death(0, 6, "at=optimizer"),
                        new Death(0, 8, "at=checkpoint"),
                        new Death(0, 10, "at=updated")));
    }

    /**
     * The checkpoint from which the run resumed is gone by the time of the death: the new process
     * has to do without it.
     */
    @Test
    void aResumedRunSurvivesADeathAfterItsFirstCheckpointIsGone() {
        String steady = "optimizer={learning-rate=5e-3, min-learning-rate=5e-3, warmup-steps=3}";
        Training.onText(folder).set(steady, "run.steps=4").complete();
        Training training =
                Training.onText(folder)
                        .set(steady, "checkpoint={every=2, retain=1}")
                        .set("fault=[{kill-rank=1, op=1F0, step=11}]")
                        .resume();

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).isEqualTo(CalmRuns.onText(steady).lossBits());
        assertThat(ended.recoveries()).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void withoutRecoveryADeathEndsTheRunAndTheRankIsNamed(int rank) {
        Training training =
                Training.onText(folder)
                        .set("recovery.enabled=false", "checkpoint.every=0")
                        .set("fault=[{kill-rank=%d, step=5, at=ready}]".formatted(rank));

        Trained ended = RanksInOneJvm.run(training);

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(ended.err()).contains("rank " + rank, "signal 9").doesNotContain("\tat ");
    }

    @Test
    void aSpareReplacesTheDeadProcess() {
        Training training =
                Training.onText(folder)
                        .set("recovery.spares=1")
                        .set(
                                "fault=[{kill-rank=1, op=1F2, step=7}, {kill-rank=0, op=0F1,"
                                        + " step=11}]");

        Trained ended = RanksInOneJvm.run(training);

        assertThat(ended.exitCode()).as(ended.err()).isEqualTo(ExitCode.OK);
        assertThat(ended.lossBits()).isEqualTo(CalmRuns.onText().lossBits());
    }

    @Test
    void repeatedDeathsEndTheRunWithAllCauses() {
        Training training =
                Training.onText(folder)
                        .set("recovery.max-restarts=1")
                        .set(
                                "fault=[{kill-rank=1, op=1F2, step=6}, {kill-rank=0, op=0F1,"
                                        + " step=7}]");

        Trained ended = RanksInOneJvm.run(training);

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(ended.out() + ended.err())
                .contains("rank 0", "rank 1", "recovery.max-restarts = 1");
    }

    // ---- on from a mirror -----------------------------------------------------------------------

    /** Every run has two deaths, the second when one process already has two ranks. */
    @ParameterizedTest(name = "rank 1 at {0}, rank 3 at {1}")
    @CsvSource({
        "op=1F0, op=3B2", // warm-up, steady
        "op=1B3, at=ready", // cool-down; gradients complete but not reported
        "at=optimizer, at=updated", // before and after some of the ranks applied the step
        "at=checkpoint, at=saved"
    })
    void aDeathInAnyPhaseLosesNoCommittedStep(String first, String second) {
        List<String> bits = CalmRuns.onText(FOUR_STAGES).lossBits();
        Training training =
                Training.onText(folder)
                        .set(FOUR_STAGES)
                        .set("recovery.mirror=on")
                        .set(
                                "fault=[{kill-rank=1, step=4, %s}, {kill-rank=3, step=8, %s}]"
                                        .formatted(first, second));

        Trained mirrored = RanksInOneJvm.complete(training);

        assertThat(mirrored.lossBits()).isEqualTo(bits);
        assertThat(mirrored.recoveries())
                .hasSize(2)
                .allSatisfy(
                        recovery -> {
                            assertThat(recovery.get("restart").asText()).isEqualTo("mirror");
                            assertThat(recovery.get("stepsLost").asLong()).isZero();
                        });
    }

    /** What mirrors keep of a family is its state: they take over without a changed bit. */
    @ParameterizedTest
    @CsvSource({
        "llama, 3, 1",
        "qwen3, 3, 1",
        "retnet, 3, 1",
        "retnet-mixed, 3, 1",
        "retnet-mixed, 2, 2"
    })
    void deathsOfOtherFamiliesDoNotChangeTheLosses(String family, int stages, int parts) {
        String[] model = {
            "model={" + TinyFamily.of(family) + "}",
            "parallel.context=" + parts,
            "schedule={kind=seq1f1b, slices=2}",
            "run.steps=7",
            "evaluation.every=0"
        };
        List<String> bits = CalmRuns.onText(model).lossBits();
        Training training =
                Training.onText(folder)
                        .set(model)
                        .set("pipeline.stages=" + stages, "recovery.mirror=on")
                        .set(
                                "fault=[{kill-rank=1, step=3, op=\"1F0s1\"}, {kill-rank=2, step=6, at=ready}]");

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).isEqualTo(bits);
        assertThat(ended.recoveries())
                .hasSize(2)
                .allSatisfy(
                        recovery ->
                                assertThat(recovery.get("restart").asText()).isEqualTo("mirror"));
    }

    /** Every run has two deaths; the steps between them send what was lost and known before. */
    @ParameterizedTest(name = "{0} replicas: rank 1 at {1}, rank 2 at {2}")
    @CsvSource({
        "1, op=1F2, at=optimizer", // between two links, and where the commit is told again
        "2, at=updated, op=2F1"
    })
    void mirrorsHaveWhatLinksKeep(int replicas, String first, String second) {
        String[] kept = {
            "data-plane.codec=int8",
            "data-plane.gradient-codec=top-k",
            "data-plane.error-feedback=true",
            "data-plane.delta-rows=5",
            "data.packing=padded",
            "data.validation-fraction=0.99",
            "pipeline.stages=3",
            "parallel.data=" + replicas,
            "evaluation.every=0"
        };
        List<String> bits = CalmRuns.onText(kept).lossBits();
        Training training =
                Training.onText(folder)
                        .set(kept)
                        .set("recovery.mirror=on")
                        .set(
                                "fault=[{kill-rank=1, step=4, %s}, {kill-rank=2, step=8, %s}]"
                                        .formatted(first, second));

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).isEqualTo(bits);
        assertThat(ended.recoveries())
                .hasSize(2)
                .allSatisfy(
                        recovery -> {
                            assertThat(recovery.get("restart").asText()).isEqualTo("mirror");
                            assertThat(recovery.get("stepsLost").asLong()).isZero();
                        });
    }

    @Test
    void deathsOfAModelThatSeesBothWaysDoNotChangeTheLosses() {
        String[] model = {
            "model={" + TinyFamily.of("bert") + "}",
            "data.loss=masked",
            "run.steps=7",
            "evaluation.every=0"
        };
        List<String> bits = CalmRuns.onText(model).lossBits();
        Training training =
                Training.onText(folder)
                        .set(model)
                        .set("pipeline.stages=3", "recovery.mirror=on")
                        .set(
                                "fault=[{kill-rank=1, step=3, op=\"1F0\"}, {kill-rank=2, step=6, at=ready}]");

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).isEqualTo(bits);
        assertThat(ended.recoveries()).hasSize(2);
    }

    // ---- replicas and shards --------------------------------------------------------------------

    /**
     * Every run has two deaths; after a mirror took over, the second death takes both ranks with
     * it. Before them, where parameters are gathered, a rank pauses in a gather: the others keep
     * waiting as long as nothing else is wrong.
     */
    @ParameterizedTest(name = "{0}: {2}, then {3}; mirrors {1}")
    @CsvSource(
            delimiter = '|',
            value = {
                "data=2                        | on  | op=\"0B1\"           | at=optimizer",
                "data=2, zero.stage=2          | on  | at=reducing          | at=gathering",
                "data=2, zero.stage=3          | on  | op=\"0REDUCE_GRAD\"  | at=optimizer",
                "data=2, zero.stage=3          | off | at=gathering         | at=updated",
                "tensor=2                      | on  | op=\"0F1\"           | op=\"0B2\"",
                "tensor=2                      | off | op=\"0B1\"           | at=ready"
            })
    void deathsDoNotChangeABit(String parallel, String mirror, String first, String second) {
        List<String> bits = GridTraining.calmBits(parallel);
        boolean gathers = parallel.contains("zero.stage=3");
        String pause = gathers ? "{pause-rank=1, for=2 s, step=2, at=gathering}," : "";
        Training training =
                GridTraining.on(folder, parallel)
                        .set("recovery.mirror=" + mirror)
                        .set("timeouts.lease=" + (gathers ? "6 s" : "3 s"))
                        .set(
                                "fault=[%s {kill-rank=1, step=3, %s}, {kill-rank=0, step=6, %s}]"
                                        .formatted(pause, first, second));

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).isEqualTo(bits);
        assertThat(ended.recoveries())
                .extracting(recovery -> recovery.get("restart").asText())
                .containsExactly(mirror.equals("on") ? "mirror" : "checkpoint", "checkpoint");
        if (mirror.equals("on")) {
            assertThat(ended.recoveries().getFirst().get("stepsLost").asLong()).isZero();
            assertThat(ended.directory().resolve("report.html"))
                    .content()
                    .as("a whole replica is a mirror that takes no memory")
                    .matches(
                            page -> page.contains("<td>mirrors</td>") != parallel.equals("data=2"));
        }
    }

    /** Four ranks, so that after a death one holder has mirrors of two shards of one stage. */
    @Test
    void stagesOfShardsSurviveTwoDeaths() {
        String parallel = "tensor=2";
        List<String> bits = GridTraining.calmBits(parallel, "pipeline.stages=2");
        Training training =
                GridTraining.on(folder, parallel)
                        .set("pipeline.stages=2", "recovery.mirror=on")
                        .set(
                                "fault=[{kill-rank=1, step=3, op=\"0B1\"}, {kill-rank=2, step=6,"
                                        + " at=optimizer}]");

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).isEqualTo(bits);
        assertThat(ended.recoveries())
                .hasSize(2)
                .allSatisfy(
                        recovery ->
                                assertThat(recovery.get("restart").asText()).isEqualTo("mirror"));
    }

    // ---- what is not finite ---------------------------------------------------------------------

    @Test
    void aNanOfOneReplicaIsAppliedOnNoRank() {
        String parallel = "data=2, zero.stage=2";
        List<String> bits = GridTraining.calmBits(parallel, "pipeline.stages=2");
        Training training =
                GridTraining.on(folder, parallel)
                        .set("pipeline.stages=2", "recovery.non-finite=rollback")
                        .set("fault=[{inject-nan=1, replica=1, micro-batch=1, step=6}]");

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).isEqualTo(bits);
        assertThat(ended.recoveries())
                .singleElement()
                .satisfies(
                        recovery ->
                                assertThat(recovery.get("cause").asText())
                                        .contains("step 6", "stage 1", "not finite"));
    }

    @Test
    void stageProcessesSkipTheSameStep() {
        Training training =
                Training.onText(folder.resolve("processes"))
                        .set("recovery.non-finite=skip")
                        .set("fault=[{inject-nan=1, micro-batch=2, step=7}]");
        Training inOneProcess =
                Training.onText(folder.resolve("single"))
                        .set(training.settings().toArray(String[]::new));
        List<String> bits = inOneProcess.complete().lossBits();

        Trained trained = RanksInOneJvm.complete(training);

        assertThat(trained.lossBits()).isEqualTo(bits).hasSize(11);
        assertThat(trained.recoveries())
                .singleElement()
                .satisfies(recovery -> assertThat(recovery.get("replaced")).isEmpty());
    }
}
