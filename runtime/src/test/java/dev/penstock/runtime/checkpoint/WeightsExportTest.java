package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.checkpoint.WeightsExport.Form;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredTensors;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import dev.penstock.runtime.weights.WeightsFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WeightsExportTest {
    @TempDir Path folder;

    @Test
    void aValueThatDoesNotFitLeavesTheFolderAsItWas() throws IOException {
        Path weights = folder.resolve("model.safetensors");
        WeightsExport.write(weights, List.of(ones("a", 3)), Map.of(), Form.AS_STORED);
        byte[] before = Files.readAllBytes(weights);
        TensorSource large = StoredTensor.ofFloats("b", List.of(1), new float[] {70_000});

        assertThatThrownBy(
                        () ->
                                WeightsExport.write(
                                        weights,
                                        List.of(ones("a", 3), large),
                                        Map.of("config.json", "{}"),
                                        new Form(Optional.of(StoredType.F16), 6)))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("b: has a value beyond the range of F16; try bf16 or f32");

        assertThat(folder.toFile().list()).containsExactly("model.safetensors");
        assertThat(weights).hasBinaryContent(before);
    }

    /** Parts of 10 floats: a tensor that does not fit the last one begins another. */
    @Test
    void partsAreFilledInOrder() {
        Path weights = folder.resolve("model.safetensors");
        List<TensorSource> tensors =
                List.of(ones("a", 4), ones("b", 6), ones("large", 30), ones("c", 1), ones("d", 9));

        List<Path> files =
                WeightsExport.write(weights, tensors, Map.of(), new Form(Optional.empty(), 40));

        assertThat(files)
                .extracting(file -> names(file))
                .containsExactly(List.of("a", "b"), List.of("large"), List.of("c", "d"));
        try (StoredTensors all = WeightsFiles.open(folder)) {
            assertThat(all.tensors()).hasSize(5);
        }
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
