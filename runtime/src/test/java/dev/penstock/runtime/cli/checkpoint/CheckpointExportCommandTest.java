package dev.penstock.runtime.cli.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CheckpointExportCommandTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"model.tied=true", "model.tied=false"})
    void aRunThatStartsFromTheExportHasTheLossOfTheRunThatWasExported(String tied) {
        Trained trained =
                Training.onText(folder.resolve("trained")).set("run.steps=5", tied).complete();
        Path weights = folder.resolve("gpt/model.safetensors");

        Cli export = export(trained.directory(), weights);
        Trained started =
                Training.onText(folder.resolve("started"))
                        .set("run.steps=1", "pipeline.stages=1", tied)
                        .init(weights)
                        .complete();

        assertThat(export.exitCode()).as(export.err()).isEqualTo(ExitCode.OK);
        assertThat(export.out()).contains("step 5", "model.safetensors", "config.json");
        assertThat(lossOf(started.validationBits().getFirst()))
                .isEqualTo(lossOf(trained.validationBits().getLast()));
    }

    @Test
    void theFileHoldsTheParametersAloneAndItsConfigTheShape() throws IOException {
        Path checkpoint = SavedRun.write(folder.resolve("run"), 100);
        Path weights = folder.resolve("tiny.safetensors");

        JsonNode answer = JSON.readTree(export(checkpoint, weights, "--json").out());

        assertThat(answer.get("step").asLong()).isEqualTo(100);
        assertThat(answer.get("bytes").asLong()).isEqualTo(Files.size(weights));
        assertThat(ModelConfig.read(Path.of(answer.get("config").asText())))
                .isEqualTo(SavedRun.MODEL);
        try (SafetensorsFile file = SafetensorsFile.open(weights)) {
            assertThat(file.tensors())
                    .extracting(StoredTensor::name)
                    .containsExactlyInAnyOrderElementsOf(SavedRun.MODEL.parameters().keySet());
        }
    }

    @Test
    void aModelThatIsThereIsReplacedOnlyWhenAsked() throws IOException {
        Path run = folder.resolve("run");
        SavedRun.write(run, 100);
        Path config = Files.writeString(folder.resolve("config.json"), "of another model");
        Path weights = folder.resolve("model.safetensors");

        Cli refused = export(run, weights);
        String kept = Files.readString(config);
        Cli forced = export(run, weights, "--force");

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("config.json", "--force");
        assertThat(kept).isEqualTo("of another model");
        assertThat(forced.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(ModelConfig.read(config)).isEqualTo(SavedRun.MODEL);
    }

    @Test
    void aFolderIsNoOutputAndARunWithoutCheckpointsNoInput() {
        Cli noName = export(SavedRun.write(folder.resolve("run"), 100), folder.resolve("gpt"));
        Cli nothing = export(folder.resolve("nowhere"), folder.resolve("gpt.safetensors"));

        assertThat(noName.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(noName.err()).contains("ends with .safetensors", "gpt/model.safetensors");
        assertThat(nothing.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(nothing.err()).contains("nowhere: no checkpoint here");
        assertThat(folder.resolve("gpt.safetensors")).doesNotExist();
    }

    private static Cli export(Path from, Path to, String... more) {
        String[] arguments = new String[5 + more.length];
        String[] first = {"checkpoint", "export", from.toString(), "--output", to.toString()};
        System.arraycopy(first, 0, arguments, 0, first.length);
        System.arraycopy(more, 0, arguments, first.length, more.length);
        return Cli.run(arguments);
    }

    /** Without the step that it was measured after. */
    private static String lossOf(String bits) {
        return bits.substring(bits.indexOf(' '));
    }
}
