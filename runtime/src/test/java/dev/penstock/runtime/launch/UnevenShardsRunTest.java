package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Stages with different numbers of tensor shards, beside one device and over the data plane. */
class UnevenShardsRunTest {
    @TempDir private Path folder;
    private int runs;

    private Training run(String... settings) throws IOException {
        return Training.onText(Files.createDirectories(folder.resolve("run " + runs++)))
                .set("run.steps=4", "evaluation.every=4", "checkpoint.every=0")
                .set("batch={sequences=4, micro-batches=4}", "model.heads=4", "model.tied=false")
                .set(settings);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "parallel.tensor=[1, 2]",
                "parallel.tensor=[4, 1]",
                "parallel={tensor=[2, 1], data=2, zero.stage=3}",
                "parallel={tensor=[1, 2], context=2}"
            })
    void lossesAreThoseOfOneDevice(String layout) throws IOException {
        Trained one = run("pipeline.stages=1").complete();

        Trained uneven = run("pipeline.stages=2", "schedule.slices=2", layout).complete();

        assertClose(uneven, one);
    }

    @Test
    void aDeathChangesNoBit() throws IOException {
        String layout = "parallel.tensor=[2, 1]";
        Trained calm = run("pipeline.stages=2", layout).complete();

        Trained ended =
                RanksInOneJvm.complete(
                        run("pipeline.stages=2", layout)
                                .set("recovery.mirror=on", "data-plane.codec=none")
                                .set("fault=[{kill-rank=1, op=0F2, step=3}]"));

        assertThat(ended.recoveries()).hasSize(1);
        assertThat(ended.lossBits()).isEqualTo(calm.lossBits());
        assertThat(ended.validationBits()).isEqualTo(calm.validationBits());
    }

    @Test
    void aRunContinuesOnOtherShards() throws IOException {
        Training first =
                run("pipeline.stages=2", "parallel.tensor=[1, 2]", "checkpoint.every=2")
                        .set("run.steps=2", "optimizer.schedule=constant", "evaluation.every=0");
        first.complete();
        Trained whole =
                run("pipeline.stages=1", "optimizer.schedule=constant", "evaluation.every=0")
                        .complete();

        Trained ended =
                first.copy().resume().set("run.steps=4", "parallel.tensor=[2, 1]").complete();

        assertThat(ended.losses().getLast()).isCloseTo(whole.losses().getLast(), within(1e-5));
    }

    @Test
    void whatTheyDoNotAllowIsToldAtOnce() throws IOException {
        Trained refused =
                run(
                                "pipeline.stages=3",
                                "parallel={tensor=[2, 3], sequence=true}",
                                "model.tied=true")
                        .run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("one for each of the 3 ranks of a pipeline, got [2, 3]")
                .contains("each is a multiple of all smaller ones, got [2, 3]")
                .contains("where parallel.sequence = true")
                .contains("where model.tied = true")
                .doesNotContain("\tat ");
    }

    private static void assertClose(Trained actual, Trained expected) {
        assertThat(actual.losses()).hasSameSizeAs(expected.losses());
        for (int step = 0; step < expected.losses().size(); step++) {
            assertThat(actual.losses().get(step))
                    .isCloseTo(expected.losses().get(step), within(1e-5));
        }
    }
}
