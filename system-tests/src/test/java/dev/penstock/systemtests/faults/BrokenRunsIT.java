package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.disk.SmallDisk;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Runs that break on the way report where, and lose nothing that was saved. */
class BrokenRunsIT {
    @TempDir Path folder;

    @ParameterizedTest
    @CsvSource({
        "h.0.attn.c_attn.weight, 0",
        "h.1.mlp.c_proj.bias, 1",
        "ln_f.weight, 1",
        "wte.weight, 0",
    })
    void aWeightThatIsNotANumberEndsTheRunAndIsLocated(String tensor, int stage) {
        Path weights = folder.resolve("nan.safetensors");
        writeWithNan(tensor, weights);

        Trained ended =
                Training.golden(folder, false)
                        .set("pipeline.stages=2", "pipeline.partition=[1,1]")
                        .init(weights)
                        .run();

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(ended.err())
                .contains("step 1", "stage " + stage, "micro-batch", "not finite")
                .doesNotContain("\tat ");
        assertThat(ended.losses()).isEmpty();
    }

    @Test
    void anAbsurdLearningRateEndsTheRunWithAClearErrorAndKeepsTheCheckpoints() {
        Training training = Training.onText(folder).set("checkpoint.every=1", "run.steps=40");
        training.set("optimizer={learning-rate=1e30, warmup-steps=0, clip-norm=0}");

        Trained ended = training.run();

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        int failed = ended.losses().size() + 1;
        assertThat(ended.err())
                .contains("step " + failed, "stage ", "micro-batch ", "learning rate")
                .doesNotContain("\tat ");
        List<String> ignored = new ArrayList<>();
        Path checkpoints = ended.directory().resolve(CheckpointFolders.FOLDER);
        SavedCheckpoint newest = CheckpointFolders.latest(checkpoints, ignored::add).orElseThrow();
        assertThat(ignored).isEmpty();
        assertThat(newest.step()).isEqualTo(failed - 1L);
    }

    @Test
    void aFullDiskDoesNotStopTheRunButItsEndSaysThatItIsNotSaved() throws Exception {
        try (SmallDisk disk = SmallDisk.below(folder, "size=700k")) {
            List<String> bits = Training.onText(folder.resolve("roomy")).complete().lossBits();

            Trained trained = Training.onText(disk.path()).set("checkpoint.retain=1").run();

            assertThat(trained.exitCode()).as(trained.err()).isEqualTo(ExitCode.FAILURE);
            assertThat(trained.err()).contains("NOT SAVED: not saved after step 12: ");
            assertThat(trained.directory().resolve("log.txt"))
                    .content()
                    .contains("could not save step 8", "bytes needed", "free");
            assertThat(trained.out())
                    .contains("completed, NOT SAVED in ")
                    .contains("not saved after step 12: ", "its newest checkpoint is of step 4");
            assertThat(trained.directory().resolve("summary.json"))
                    .content()
                    .contains("completed, NOT SAVED");
            assertThat(trained.lossBits()).isEqualTo(bits);
            List<String> ignored = new ArrayList<>();
            Path checkpoints = trained.directory().resolve(CheckpointFolders.FOLDER);
            assertThat(CheckpointFolders.latest(checkpoints, ignored::add).orElseThrow().step())
                    .isEqualTo(4);
            assertThat(ignored).isEmpty();
        }
    }

    private static void writeWithNan(String tensor, Path target) {
        try (SafetensorsFile file =
                SafetensorsFile.open(Training.golden("untied.init.safetensors"))) {
            List<StoredTensor> tensors = new ArrayList<>();
            for (StoredTensor stored : file.tensors()) {
                float[] values = stored.toFloats();
                if (stored.name().equals(tensor)) {
                    for (int i = 0; i < values.length; i += 5) {
                        values[i] = Float.NaN;
                    }
                }
                tensors.add(StoredTensor.ofFloats(stored.name(), stored.shape(), values));
            }
            SafetensorsWriter.write(target, Map.of(), tensors);
        }
    }
}
