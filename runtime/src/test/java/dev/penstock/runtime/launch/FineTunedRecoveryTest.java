package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.nio.file.Files;
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

    /** Rank 0 runs forward alone, rank 2 has backwards for its input alone; or a file is read. */
    @ParameterizedTest(name = "{0}, from a file: {2}")
    @CsvSource(
            delimiter = '|',
            value = {
                "freeze=[\"w*\", \"h.0.*\", \"h.2.*\"] | 4 | false",
                "method=lora, freeze=[\"h.0.*\", \"h.2.*\"], frozen=int8 | 4 | true",
                "method=lora, freeze=[\"h.0.*\", \"h.2.*\"] | 2 | true"
            })
    void frozenStagesAndTrainedOnesComeBackFromMirrors(String tuning, int every, boolean file)
            throws Exception {
        Trained whole = staged(undisturbed, tuning, every, file).complete();

        Trained ended =
                RanksInOneJvm.complete(
                        staged(disturbed, tuning, every, file)
                                .set("recovery={mirror=on, max-restarts=9}")
                                .set(
                                        "fault=[{kill-rank=0, op=0F2, step=2}, {kill-rank=1, op=1B1, step=3},"
                                                + " {kill-rank=2, op=2F2, step=4}]"));

        assertThat(ended.recoveries()).hasSize(3);
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
        assertThat(ended.recoveries())
                .allSatisfy(
                        recovery -> {
                            assertThat(recovery.get("restart").asText()).isEqualTo("mirror");
                            assertThat(recovery.get("stepsLost").asLong()).isZero();
                        });
    }

    private static Training staged(Path folder, String tuning, int every, boolean file)
            throws Exception {
        Path own = Files.createDirectories(folder.resolve("run"));
        Training training =
                Training.onText(own)
                        .set("run.steps=5", "evaluation.every=0", "checkpoint.every=" + every)
                        .set("model.layers=4", "pipeline={stages=4}")
                        .set("fine-tune={" + tuning + "}");
        if (file) {
            Path before = Files.createDirectories(folder.resolve("before"));
            Training first =
                    Training.onText(before)
                            .set("run.steps=1", "evaluation.every=0", "checkpoint.every=1")
                            .set("run.seed=3", "model.layers=4");
            first.complete();
            training.init(first.directory());
        }
        return training;
    }
}
