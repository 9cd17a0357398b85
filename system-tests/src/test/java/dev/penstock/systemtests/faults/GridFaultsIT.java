package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.systemtests.support.CalmRuns;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Ranks with replicas and shards die, are suspended or compute nonsense in the middle of gathers,
 * sums and commits: the run continues with the same losses, bit for bit.
 */
@EnabledOnOs(OS.LINUX)
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class GridFaultsIT {
    @TempDir Path folder;

    /**
     * Every run has two deaths; after a mirror took over, the second death takes both ranks with
     * it. Before them, where parameters are gathered, a process is suspended in a gather: the
     * others keep waiting as long as nothing else is wrong.
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
        List<String> bits = calmBits(parallel);
        boolean gathers = parallel.contains("zero.stage=3");
        String pause = gathers ? "{pause-rank=1, for=2 s, step=2, at=gathering}," : "";

        Trained ended =
                processes("harmed", parallel)
                        .set("recovery.mirror=" + mirror)
                        .set("timeouts.lease=" + (gathers ? "6 s" : "3 s"))
                        .set(
                                "fault=[%s {kill-rank=1, step=3, %s}, {kill-rank=0, step=6, %s}]"
                                        .formatted(pause, first, second))
                        .complete();

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
        List<String> bits = calmBits(parallel, "pipeline.stages=2");

        Trained ended =
                training("harmed", parallel)
                        .set("pipeline={stages=2, processes=per-stage}", "recovery.mirror=on")
                        .set(
                                "fault=[{kill-rank=1, step=3, op=\"0B1\"}, {kill-rank=2, step=6,"
                                        + " at=optimizer}]")
                        .complete();

        assertThat(ended.lossBits()).isEqualTo(bits);
        assertThat(ended.recoveries())
                .hasSize(2)
                .allSatisfy(
                        recovery ->
                                assertThat(recovery.get("restart").asText()).isEqualTo("mirror"));
    }

    /** Only a rank's thread is suspended, for longer than three times the slowest op so far. */
    @Test
    void aStalledSumIsReportedWithTheWaitingAndTheAwaitedRank() {
        Trained ended =
                training("harmed", "data=2, zero.stage=2")
                        .set("timeouts.stall-report=1 s")
                        .set("fault=[{pause-rank=1, for=10 s, step=7, op=\"0REDUCE_GRAD\"}]")
                        .complete();

        assertThat(ended.recoveries()).isEmpty();
        assertThat(ended.directory().resolve("report.html"))
                .content()
                .contains("nothing has moved for")
                .containsPattern(
                        "rank 0: reduce-scatter .* of ranks \\[0, 1] waits for rank 1, for \\d");
    }

    @Test
    void aNanOfOneReplicaIsAppliedOnNoRank() {
        String parallel = "data=2, zero.stage=2";
        Training training = training("harmed", parallel).set("pipeline.stages=2");
        List<String> bits = calmBits(parallel, "pipeline.stages=2");

        Trained ended =
                training.set("pipeline.processes=per-stage", "recovery.non-finite=rollback")
                        .set("fault=[{inject-nan=1, replica=1, micro-batch=1, step=6}]")
                        .complete();

        assertThat(ended.lossBits()).isEqualTo(bits);
        assertThat(ended.recoveries())
                .singleElement()
                .satisfies(
                        recovery ->
                                assertThat(recovery.get("cause").asText())
                                        .contains("step 6", "stage 1", "not finite"));
    }

    private Training processes(String name, String parallel) {
        return training(name, parallel).set("pipeline.processes=per-stage");
    }

    /** Few tokens, since most of the time goes into starting processes. */
    private Training training(String name, String parallel) {
        return Training.onText(folder.resolve(name)).set(settings(parallel));
    }

    private static List<String> calmBits(String parallel, String... more) {
        return CalmRuns.onText(
                        Stream.concat(Stream.of(settings(parallel)), Stream.of(more))
                                .toArray(String[]::new))
                .lossBits();
    }

    private static String[] settings(String parallel) {
        return new String[] {
            "run.steps=7",
            "evaluation.every=0",
            "checkpoint.every=2",
            "model.context=8",
            "pipeline.stages=1",
            "parallel={" + parallel + "}"
        };
    }
}
