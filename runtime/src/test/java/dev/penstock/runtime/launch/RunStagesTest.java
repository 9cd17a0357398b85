package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Stages whose trained state comes from a mirror. */
class RunStagesTest {
    private static final FineTuning NORM = new FineTuning(Optional.empty(), List.of("w*", "h.*"));

    @TempDir private Path run;

    @Test
    void whatIsFrozenIsReadWhereTheRunBeganAndWhatIsTrainedIsNot() {
        List<String> read = new ArrayList<>();
        ParameterSource first =
                (name, _, destination) -> {
                    read.add(name);
                    destination.fill((byte) 1);
                    return true;
                };

        built(
                first,
                state ->
                        assertThat(state)
                                .extracting(NamedTensor::name)
                                .contains("ln_f.weight", "optimizer.m.ln_f.weight")
                                .containsAll(read));

        assertThat(read).contains("wte.weight", "h.0.mlp.c_fc.weight");
        assertThat(read).noneMatch(name -> name.contains("ln_f"));
    }

    @Test
    void whereTheRunsBeginIsGoneTheNewestCheckpointHasWhatIsFrozen() {
        ParameterSource gone =
                (_, _, _) -> {
                    throw new StoredFileException(run, "gone");
                };
        Path saved = SavedRun.write(run, 3);

        built(
                gone,
                state -> {
                    try (var reader = SavedCheckpoint.open(saved).read();
                            Arena arena = Arena.ofConfined()) {
                        for (NamedTensor tensor : state) {
                            if (!tensor.name().contains("ln_f")) {
                                float[] expected =
                                        reader.read(tensor.name(), arena).orElseThrow().toFloats();
                                assertThat(
                                                tensor.tensor()
                                                        .segment()
                                                        .toArray(ValueLayout.JAVA_FLOAT))
                                        .as(tensor.name())
                                        .isEqualTo(expected);
                            }
                        }
                    }
                });
    }

    @Test
    void withoutAnyCheckpointItIsToldWhatIsGone() {
        ParameterSource gone =
                (_, _, _) -> {
                    throw new StoredFileException(run, "the file with which it began");
                };

        assertThatThrownBy(() -> built(gone, _ -> {}))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("the file with which it began");
    }

    private interface Check {
        void of(List<NamedTensor> state);
    }

    private void built(ParameterSource first, Check check) {
        GptSettings settings =
                TinyRuns.settings(SavedRun.MODEL.shape(), 1, new BatchShape(1, 1, List.of(16), 16))
                        .training(NORM);
        var stages =
                new GptStageFactory(
                        settings,
                        List.of(new StageBudget(1, List.of(1), 1, 1, 0)),
                        TinyRuns.tokens(256),
                        first);
        var runs = new RunStages(stages, run.resolve(CheckpointFolders.FOLDER));
        DeviceSettings cpu = DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.CPU);
        try (Device device = Devices.open(cpu.withThreads(1));
                StageProgram stage =
                        runs.blank()
                                .createAll(List.of(0), RankPlace.single(0), device)
                                .getFirst()) {
            check.of(stage.state());
        }
    }
}
