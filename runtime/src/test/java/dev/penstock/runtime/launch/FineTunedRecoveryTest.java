package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A rank that dies comes back with frozen weights and adapters as they were. */
class FineTunedRecoveryTest {
    @TempDir Path undisturbed;
    @TempDir Path disturbed;

    private static Training lora(Path folder) {
        return Training.onText(folder)
                .set("run.steps=5", "evaluation.every=0", "checkpoint.every=0")
                .set("fine-tune.method=lora", "fine-tune.targets=[all-linear]");
    }

    private static final String[] HALVES = {"device.precision=bf16", "fine-tune.frozen=bf16"};
    private static final String[] INTEGERS = {"fine-tune.frozen=int8"};

    @ParameterizedTest(name = "dropout {0}")
    @ValueSource(strings = {"0", "0.1"})
    void aRunOfAdaptersGoesOnAfterADeathWithTheSameBits(String dropout) {
        String drop = "fine-tune.dropout=" + dropout;
        Trained whole = lora(undisturbed).set(drop).complete();

        Trained ended =
                RanksInOneJvm.complete(
                        lora(disturbed).set(drop).set("fault=[{kill-rank=1, op=1F2, step=3}]"));

        assertThat(ended.recoveries()).hasSize(1);
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
    }

    /** Mirrors hold frozen matrices as their ranks do: in bf16 alone, or in integers. */
    @ParameterizedTest(name = "frozen in {0}, mirrored: {1}")
    @CsvSource({"bf16, on", "int8, on", "int8, off"})
    void narrowMatricesComeBack(String frozen, String mirror) {
        String[] narrow = frozen.equals("bf16") ? HALVES : INTEGERS;
        Trained whole = lora(undisturbed).set(narrow).complete();

        Trained ended =
                RanksInOneJvm.complete(
                        lora(disturbed)
                                .set(narrow)
                                .set("recovery.mirror=" + mirror)
                                .set("fault=[{kill-rank=1, op=1F2, step=3}]"));

        assertThat(ended.recoveries()).hasSize(1);
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
    }
}
