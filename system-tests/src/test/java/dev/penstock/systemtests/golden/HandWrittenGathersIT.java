package dev.penstock.systemtests.golden;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.GoldenTruth;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Orders that state themselves when sharded parameters are gathered and released. */
class HandWrittenGathersIT {
    private static final String SHAPE = "ranks: 2\nchunks: 2\nplacement: loop\nmicro-batches: 2\n";

    /**
     * Breadth-first; stage 1 is gathered layer by layer, stage 2 early, stage 3 is left to the run.
     */
    private static final String ORDER =
            """
            rank 0: 0UNSHARD 2UNSHARD 0F0 0F1 0RESHARD 2F0 2F1 2B1 0UNSHARD 2B0 2REDUCE_GRAD 2RESHARD 0B1 0B0 0RESHARD
            rank 1: 1UNSHARD[0-0] 1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0 1RESHARD[0-0]
            """;

    @TempDir Path folder;

    @ParameterizedTest
    @CsvSource({"true, pass", "false, pass", "true, step", "false, micro-batch"})
    void theBitsEqualTheGeneratedOrdersAndTheLossesEqualPyTorchs(boolean tied, String residency)
            throws IOException {
        Path gradients = folder.resolve("gradients.safetensors");

        Trained byHand =
                training("by-hand", tied, residency)
                        .set("schedule.file=" + order(ORDER))
                        .option("--dump-gradients", "1:" + gradients)
                        .complete();
        Trained generated =
                training("generated", tied, residency)
                        .set("schedule.kind=breadth-first")
                        .complete();

        assertThat(byHand.lossBits()).isEqualTo(generated.lossBits());
        GoldenTruth.expectLosses(byHand, tied, "loss_fp64_accum4");
        GoldenTruth.expectFirstGradients(gradients, tied);
    }

    /** Tied stages sum with their replicas every time, and with each other only the last time. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anOrderMaySumOncePerMicroBatch(boolean tied) throws IOException {
        Path gradients = folder.resolve("gradients.safetensors");
        Path order =
                order(
                        """
                        rank 0: 0F0 0F1 2F0 2F1 2B1 2REDUCE_GRAD 2B0 2REDUCE_GRAD 0B1 0REDUCE_GRAD 0B0 0REDUCE_GRAD
                        rank 1: 1F0 1F1 3F0 3F1 3B1 3REDUCE_GRAD 3B0 1B1 1B0 3REDUCE_GRAD
                        """);

        Trained trained =
                training("sums", tied, "pass")
                        .set("schedule.file=" + order, "parallel.zero.stage=2")
                        .option("--dump-gradients", "1:" + gradients)
                        .complete();

        GoldenTruth.expectLosses(trained, tied, "loss_fp64_accum4");
        GoldenTruth.expectFirstGradients(gradients, tied);
        expectRefused(
                training("refused", tied, "pass")
                        .set("schedule.file=" + order, "parallel.zero.stage=1"),
                "one sum of a stage's gradients, unless parallel.zero.stage = 2 or 3",
                "2REDUCE_GRAD again, and parallel.zero.stage = 1");
    }

    @ParameterizedTest
    @CsvSource({"0", "1", "2"})
    void gathersOfParametersThatAllRanksHaveAreRefused(int stage) throws IOException {
        expectRefused(
                training("refused", true, "pass")
                        .set("schedule.file=" + order(ORDER), "parallel.zero.stage=" + stage),
                "unless parallel.zero.stage = 3",
                "0UNSHARD, and parallel.zero.stage = " + stage);
    }

    @Test
    void parametersGatheredWithinOpsCannotBeGatheredByOps() throws IOException {
        expectRefused(
                training("refused", true, "layer").set("schedule.file=" + order(ORDER)),
                "parallel.zero.residency",
                "micro-batch, pass or step where schedule.file gathers by itself (0UNSHARD)");
    }

    @Test
    void theJudgeReportsAComputationWithoutItsParametersWithItsLine() throws IOException {
        Path order = order(ORDER.replace("2B1 0UNSHARD", "2B1").replace("0B0 0RESHARD", "0B0"));

        expectRefused(
                training("refused", true, "pass").set("schedule.file=" + order),
                "order.txt:5: ",
                "0B1 needs the parameters of stage 0, which are not gathered there");
    }

    @Test
    void theJudgeReportsLayersThatAStageDoesNotHave() throws IOException {
        Path order =
                order(
                        ORDER.replace("1UNSHARD[0-0]", "1UNSHARD[0-1]")
                                .replace("1RESHARD[0-0]", "1RESHARD[0-1]"));

        expectRefused(
                training("refused", true, "pass").set("schedule.file=" + order),
                "1UNSHARD[0-1] gathers layers that are not there: the stage has 1");
    }

    private static void expectRefused(Training training, String... words) {
        Trained refused = training.run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains(words).doesNotContain("\tat ");
        assertThat(refused.err().lines().filter(line -> line.contains("expected"))).isNotEmpty();
    }

    private Training training(String name, boolean tied, String residency) {
        return Training.golden(folder.resolve(name), tied)
                .set("run.steps=4", "pipeline={stages=2, chunks=2}")
                .set("parallel={data=2, zero={stage=3, residency=%s}}".formatted(residency));
    }

    private Path order(String programs) throws IOException {
        return Files.writeString(folder.resolve("order.txt"), SHAPE + programs);
    }
}
