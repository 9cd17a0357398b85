package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.checkpoint.WeightsExport.Form;
import dev.penstock.runtime.gguf.GgufModel;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredTensors;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.vocabulary.Vocabulary;
import dev.penstock.runtime.weights.WeightsFiles;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class WeightsExportTest {
    @TempDir Path folder;

    @Test
    void aValueThatDoesNotFitLeavesTheFolderAsItWas() throws IOException {
        Path weights = folder.resolve("model.safetensors");
        write(weights, List.of(ones("a", 3)), Map.of(), Form.AS_STORED);
        byte[] before = Files.readAllBytes(weights);
        TensorSource large = StoredTensor.ofFloats("b", List.of(1), new float[] {70_000});

        assertThatThrownBy(
                        () ->
                                write(
                                        weights,
                                        List.of(ones("a", 3), large),
                                        Map.of("config.json", "{}"),
                                        new Form(Optional.of(StoredType.F16), 6)))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("b: has a value beyond the range of F16; try bf16 or f32");

        assertThat(folder.toFile().list()).containsExactly("model.safetensors");
        assertThat(weights).hasBinaryContent(before);
    }

    @Test
    void aFailedExportLeavesNoFolderThatItMade() throws IOException {
        Path there = Files.createDirectories(folder.resolve("there"));
        StoredTensor large = StoredTensor.ofFloats("b", List.of(1), new float[] {1e30f});
        var half = new Form(Optional.of(StoredType.F16), 6);
        for (Path in : List.of(there, folder.resolve("new"), there.resolve("deep/deeper"))) {
            Path weights = in.resolve("model.safetensors");

            assertThatThrownBy(() -> write(weights, List.of(large), Map.of(), half))
                    .isInstanceOf(StoredFileException.class);
        }

        assertThat(there).isEmptyDirectory();
        assertThat(folder.toFile().list()).containsExactly("there");
    }

    /** Parts of 10 floats: a tensor that does not fit the last one begins another. */
    @Test
    void partsAreFilledInOrder() {
        Path weights = folder.resolve("model.safetensors");
        List<TensorSource> tensors =
                List.of(ones("a", 4), ones("b", 6), ones("large", 30), ones("c", 1), ones("d", 9));

        List<Path> files = write(weights, tensors, Map.of(), new Form(Optional.empty(), 40));

        assertThat(files)
                .extracting(file -> names(file))
                .containsExactly(List.of("a", "b"), List.of("large"), List.of("c", "d"));
        try (StoredTensors all = WeightsFiles.open(folder)) {
            assertThat(all.tensors()).hasSize(5);
        }
    }

    /** A folder that has the name of a file stops the export where the file would get it. */
    @ParameterizedTest
    @CsvSource({
        "8, model-00001-of-00002.safetensors",
        "8, model-00002-of-00002.safetensors",
        "8, config.json",
        "8, model.safetensors.index.json",
        "1000, config.json",
        "1000, model.safetensors",
    })
    void anExportCutShortBetweenTwoFilesLeavesAFolderThatIsRefusedUntilItIsDoneAgain(
            int partBytes, String name) throws IOException {
        Path weights = folder.resolve("model.safetensors");
        Form form = new Form(Optional.empty(), partBytes);
        write(weights, List.of(ones("a", 2), ones("b", 2)), Map.of("config.json", "1"), form);
        Path obstacle = folder.resolve(name);
        Files.delete(obstacle);
        Path within = Files.createDirectories(obstacle.resolve("in the way"));
        List<TensorSource> others = List.of(ones("c", 2), ones("d", 2));

        assertThatThrownBy(() -> write(weights, others, Map.of("config.json", "22"), form))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("cannot replace the files here")
                .hasMessageContaining("--force");

        Path index = folder.resolve("model.safetensors.index.json");
        for (Path each : List.of(folder, obstacle.equals(index) ? weights : index)) {
            assertThatThrownBy(() -> WeightsFiles.open(each))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining("model.safetensors.unfinished")
                    .hasMessageContaining("export again with --force");
        }
        assertThat(WeightsFiles.areIn(folder)).isTrue();
        assertThat(folder.toFile().list()).noneMatch(each -> each.endsWith(".incomplete"));
        assertThat(WeightsExport.inTheWay(weights, Map.of()))
                .contains(folder.resolve("model.safetensors.unfinished"));
        Files.delete(within);
        Files.delete(obstacle);
        write(weights, others, Map.of("config.json", "22"), form);
        try (StoredTensors all = WeightsFiles.open(folder)) {
            assertThat(all.tensors()).extracting(StoredTensor::name).containsExactly("c", "d");
        }
        assertThat(folder.toFile().list())
                .noneMatch(each -> each.endsWith(".unfinished") || each.endsWith(".incomplete"));
    }

    /** As a kill leaves a folder in which there was nothing before. */
    @Test
    void whatAKilledExportMadeIsNotInTheWayOfTheSameOne() throws IOException {
        Path weights = folder.resolve("model.safetensors");
        Path mark = folder.resolve("model.safetensors.unfinished");
        Path config = folder.resolve("config.json");
        Path obstacle = Files.createDirectories(folder.resolve("model-00001-of-00002.safetensors"));
        Path within = Files.writeString(obstacle.resolve("x"), "");
        List<TensorSource> tensors = List.of(ones("a", 2), ones("b", 2));
        Form form = new Form(Optional.empty(), 8);
        Map<String, String> texts = Map.of("config.json", "1");
        assertThat(WeightsExport.leftBehind(weights)).isEmpty();

        assertThatThrownBy(() -> write(weights, tensors, texts, form))
                .isInstanceOf(StoredFileException.class);
        assertThat(WeightsExport.inTheWay(weights, texts)).contains(mark);
        Files.delete(mark);
        Files.delete(within);
        Files.delete(obstacle);
        write(weights, tensors, texts, form);
        Files.writeString(
                mark,
                """
                These files are being replaced by those of an export.
                made: model-00001-of-00002.safetensors
                made: model-00002-of-00002.safetensors
                made: model.safetensors.index.json
                made: config.json
                made: ../precious
                """);
        Path precious = Files.writeString(folder.resolve("tokenizer.json"), "precious");

        assertThat(WeightsExport.leftBehind(weights)).contains(mark, config).hasSize(5);
        assertThat(WeightsExport.inTheWay(weights, Map.of("config.json", "2"))).isEmpty();
        assertThat(WeightsExport.inTheWay(weights, Map.of("tokenizer.json", "2")))
                .containsExactly(precious);
        write(weights, tensors, Map.of("config.json", "2"), Form.AS_STORED);
        assertThat(WeightsExport.inTheWay(weights, Map.of())).containsExactly(weights);
        assertThat(mark).doesNotExist();
    }

    /** As a copy that is still running, or that is begun anew, leaves it. */
    @ParameterizedTest
    @ValueSource(strings = {"safetensors", "gguf", "checkpoint"})
    void aSourceThatBecomesShorterIsNamedAndNothingIsLeft(String kind) throws IOException {
        Path source = folder.resolve("from/model.safetensors");
        Files.createDirectories(source.resolveSibling("to"));
        ModelConfig model = ModelConfig.gpt2(300, 64, 64, 2, 2, true);
        List<TensorSource> tensors = new ArrayList<>();
        model.parameters()
                .forEach(
                        (name, shape) ->
                                tensors.add(TensorSource.zeros(name, StoredType.F32, shape)));
        SafetensorsWriter.write(source, Map.of(), tensors);
        Path to = source.resolveSibling("to");

        try (HuggingFaceWeights weights = HuggingFaceWeights.open(source);
                FileChannel file = FileChannel.open(source, StandardOpenOption.WRITE)) {
            file.truncate(file.size() / 2);
            assertThatThrownBy(() -> export(kind, to, model, weights))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining(source + ": became shorter while it was read");
        }

        assertThat(to.toFile().list()).isEmpty();
    }

    private static void export(String kind, Path to, ModelConfig model, ModelTensors weights)
            throws IOException {
        switch (kind) {
            case "safetensors" ->
                    HuggingFaceExport.write(to.resolve("model.safetensors"), model, weights);
            case "gguf" ->
                    GgufExport.write(
                            to.resolve("model.gguf"),
                            GgufModel.of(
                                    to,
                                    new ObjectMapper().readTree(model.toJson()),
                                    HuggingFaceExport.published(model, weights),
                                    Vocabulary.of(Tokenizer.named("bytes")),
                                    GgufModel.Form.F32),
                            weights);
            default ->
                    new CheckpointConversion(weights, new CheckpointIdentity(model, "", 0), 0)
                            .write(to.resolve("run"), 1, _ -> 0);
        }
    }

    private static List<Path> write(
            Path weights,
            List<? extends TensorSource> tensors,
            Map<String, String> texts,
            Form form) {
        return WeightsExport.write(weights, tensors, texts, form, () -> {});
    }

    private static List<String> names(Path file) {
        try (StoredTensors tensors = WeightsFiles.open(file)) {
            return tensors.tensors().stream().map(StoredTensor::name).toList();
        }
    }

    private static TensorSource ones(String name, int count) {
        float[] values = new float[count];
        Arrays.fill(values, 1);
        return StoredTensor.ofFloats(name, List.of(count), values);
    }
}
