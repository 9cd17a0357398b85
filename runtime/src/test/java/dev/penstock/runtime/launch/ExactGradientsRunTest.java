package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

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

/** Runs whose gradients are summed in fixed point: divided, dying, and continued. */
class ExactGradientsRunTest {
    @TempDir private Path folder;
    private int runs;

    private Training exact(String... settings) throws IOException {
        return Training.onText(Files.createDirectories(folder.resolve("run " + runs++)))
                .set("run.steps=20", "evaluation.every=10", "checkpoint.every=0")
                .set("batch={sequences=8, micro-batches=8}")
                .set("optimizer.gradient-sum=fixed-point")
                .set(settings);
    }

    private static void expectSame(Trained actual, Trained expected) {
        assertThat(actual.lossBits()).isEqualTo(expected.lossBits());
        assertThat(actual.validationBits()).isEqualTo(expected.validationBits());
        assertThat(actual.gradientNorms()).isEqualTo(expected.gradientNorms());
    }

    @Test
    void theNumberOfReplicasDoesNotChangeABit() throws IOException {
        String dropout = "model.dropout=0.1";
        Trained one = exact(dropout).complete();

        expectSame(exact(dropout, "parallel.data=2").complete(), one);
        expectSame(exact(dropout, "parallel.data=4").complete(), one);
        Trained direct = RanksInOneJvm.complete(exact(dropout, "parallel.data=2"));
        expectSame(direct, one);
        Trained ring =
                RanksInOneJvm.complete(
                        exact(dropout, "parallel={data=2, ring-from=1B}", "run.steps=20"));
        expectSame(ring, one);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "parallel.tensor=2",
                "parallel={tensor=2, sequence=true}",
                "parallel.context=2",
                "fine-tune={method=lora, targets=[all-linear], dropout=0.1}",
                "device.precision=bf16"
            })
    void whatDividesAMicroBatchDoesNotMatterToSumsOfSeveral(String setting) throws IOException {
        Trained one = exact(setting, "run.steps=6", "evaluation.every=3").complete();
        Trained two =
                exact(setting, "run.steps=6", "evaluation.every=3", "parallel.data=2").complete();

        expectSame(two, one);
    }

    @ParameterizedTest
    @ValueSource(strings = {"gpipe", "zb-h1", "1f1b"})
    void aDeathChangesNoBit(String kind) throws IOException {
        Trained whole = exact("run.steps=5", "parallel.data=2").complete();

        Trained ended =
                RanksInOneJvm.complete(
                        exact("run.steps=5", "parallel.data=2", "schedule.kind=" + kind)
                                .set("recovery.mirror=on")
                                .set("fault=[{kill-rank=1, op=1F2, step=3}]"));

        assertThat(ended.recoveries()).hasSize(1);
        assertThat(ended.recoveries().getFirst().get("restart").asText()).isEqualTo("mirror");
        expectSame(ended, whole);
    }

    @Test
    void aRunContinuesOnAnotherNumberOfReplicas() throws IOException {
        String rate = "optimizer.schedule=constant";
        Trained whole = exact(rate, "run.steps=6", "evaluation.every=0").complete();
        Training first = exact(rate, "run.steps=3", "evaluation.every=0", "checkpoint.every=3");
        first.complete();

        Trained ended = first.copy().resume().set("run.steps=6", "parallel.data=4").complete();

        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
    }

    @Test
    void moreMicroBatchesThanASumHasRoomForAreOneError() throws IOException {
        Trained refused = exact("batch={sequences=300000, micro-batches=300000}").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("optimizer.gradient-sum")
                .contains("are more than 262,144")
                .doesNotContain("\tat ");
    }
}
