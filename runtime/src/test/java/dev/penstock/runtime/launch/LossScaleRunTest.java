package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs whose loss is scaled: divided, overflowing, dying, and continued. */
class LossScaleRunTest {
    @TempDir private Path folder;
    private int runs;

    private Training tiny(String... settings) throws IOException {
        return Training.onText(Files.createDirectories(folder.resolve("run " + runs++)))
                .set("run.steps=8", "evaluation.every=4", "checkpoint.every=0")
                .set("optimizer.clip-norm=0.5", "model.layers=4")
                .set(settings);
    }

    private static void expectSame(Trained actual, Trained expected) {
        assertThat(actual.lossBits()).isEqualTo(expected.lossBits());
        assertThat(actual.validationBits()).isEqualTo(expected.validationBits());
        assertThat(actual.gradientNorms()).isEqualTo(expected.gradientNorms());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "pipeline.stages=1",
                "pipeline.stages=2",
                "pipeline.stages=4",
                "schedule={kind=seq1f1b, slices=2}",
                "parallel.data=2",
                "parallel={data=2, zero.stage=1}",
                "parallel={data=2, zero.stage=2}",
                "parallel={data=2, zero.stage=3}",
                "parallel.tensor=2",
                "{parallel.data=2, optimizer.gradient-sum=fixed-point}"
            })
    void aScaleChangesNoBit(String layout) throws IOException {
        String[] settings = layout.replaceAll("^\\{|}$", "").split("(?<=2), ");
        settings = layout.startsWith("{") ? settings : new String[] {layout};
        Trained plain = tiny(settings).complete();

        for (String scale : List.of("1", "256", "65536", "dynamic")) {
            expectSame(tiny(settings).set("optimizer.loss-scale=" + scale).complete(), plain);
        }
    }

    private static final String HALVES =
            "{device.precision=fp16, optimizer={loss-scale=dynamic, loss-scale-window=4}}";

    @Test
    void probe() throws IOException {
        for (String initial : List.of("4294967296", "65536")) {
            Trained t =
                    tiny("device.precision=fp16", "optimizer.loss-scale=dynamic", "optimizer.loss-scale-window=4", "optimizer.loss-scale-initial=" + initial, "run.steps=12").complete();
            System.err.println(t.out());
            System.err.println(t.losses());
            System.err.println(t.gradientNorms());
            System.err.println(tiny("run.steps=12", "device.precision=fp16").complete().losses());
            System.err.println(tiny("run.steps=12", "device.precision=bf16").complete().losses());
        }
    }
}
