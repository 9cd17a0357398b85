package dev.penstock.runtime.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.checkpoint.HuggingFaceWeights;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredTensors;
import dev.penstock.runtime.safetensors.TensorSource;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ShardedWeightsTest {
    private static final Path GOLDEN = Path.of("src/test/resources/golden/tied.init.safetensors");
    private static final ModelConfig TIED = ModelConfig.gpt2(64, 16, 32, 2, 4, true);

    @TempDir Path folder;

    @Test
    void tensorsOfSeveralFilesAreOneModel() throws IOException {
        shard(List.of());

        try (SafetensorsFile golden = SafetensorsFile.open(GOLDEN);
                StoredTensors sharded = WeightsFiles.open(folder)) {
            assertThat(sharded.path()).hasFileName("model.safetensors.index.json");
            assertThat(sharded.tensors())
                    .extracting(StoredTensor::name)
                    .containsExactlyInAnyOrderElementsOf(
                            golden.tensors().stream().map(StoredTensor::name).toList());
            for (StoredTensor tensor : golden.tensors()) {
                StoredTensor same = sharded.find(tensor.name()).orElseThrow();
                assertThat(same.shape()).isEqualTo(tensor.shape());
                assertThat(same.data().mismatch(tensor.data())).isEqualTo(-1);
            }
        }
        assertThat(HuggingFaceWeights.areIn(folder)).isTrue();
    }

    @Test
    void aTiedHeadMayBeStoredTwice() throws IOException {
        try (SafetensorsFile golden = SafetensorsFile.open(GOLDEN)) {
            shard(List.of(golden.tensor("wte.weight").named("lm_head.weight")));
        }

        try (HuggingFaceWeights weights = HuggingFaceWeights.open(folder)) {
            weights.requireParameters(TIED);
            assertThat(weights.find("lm_head.weight")).isPresent();
        }
    }

    @Test
    void everythingThatIsWrongIsSaidAtOnce() throws IOException {
        Map<String, String> map = shard(List.of());
        Files.delete(folder.resolve("part-1.safetensors"));
        Files.write(folder.resolve("part-3.safetensors"), new byte[5]);
        map.put("missing.weight", "part-0.safetensors");
        map.put("outside.weight", "../part-0.safetensors");
        map.put("unnameable.weight", "part\\ud800.safetensors");
        List<String> inFirst =
                map.entrySet().stream()
                        .filter(entry -> entry.getValue().equals("part-0.safetensors"))
                        .map(Map.Entry::getKey)
                        .toList();
        map.remove(inFirst.get(0));
        map.put(inFirst.get(1), "part-2.safetensors");
        map.put("in.damaged.weight", "part-3.safetensors");
        String twice = ", \"missing.weight\": \"part-2.safetensors\"}}";
        String json = index(map);
        Files.writeString(indexFile(), json.substring(0, json.length() - 2) + twice);

        assertThatThrownBy(() -> WeightsFiles.open(folder))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("model.safetensors.index.json: the files do not fit")
                .hasMessageContaining("part-1.safetensors: cannot read the file: no such file")
                .hasMessageContaining("part-3.safetensors: not a safetensors file")
                .hasMessageContaining("missing.weight: expected in part-0.safetensors")
                .hasMessageContaining("missing.weight: named twice")
                .hasMessageContaining("outside.weight: expected the name of a file beside")
                .hasMessageContaining("unnameable.weight: expected the name of a file beside")
                .hasMessageContaining(
                        inFirst.get(0) + ": in part-0.safetensors, but not in the index")
                .hasMessageContaining(
                        inFirst.get(1) + ": expected in part-2.safetensors, which does not have it")
                .hasMessageContaining(
                        inFirst.get(1) + ": in part-0.safetensors, but the index names part-2");
    }

    @Test
    void anIndexWithoutATableIsNone() throws IOException {
        for (String text :
                List.of("", "[]", "{}", "{\"weight_map\": 7}", "{\"weight_map\"", "\0")) {
            Files.writeString(indexFile(), text);

            assertThatThrownBy(() -> WeightsFiles.open(folder))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining("model.safetensors.index.json");
        }
    }

    @Test
    void aFolderWithoutWeightsSaysWhatItLooksFor() {
        assertThatThrownBy(() -> WeightsFiles.open(folder))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("no weights here; expected model.safetensors or");
    }

    /** Writes the golden weights in three files, and an index; returns its table. */
    private Map<String, String> shard(List<TensorSource> more) throws IOException {
        Map<String, String> map = new LinkedHashMap<>();
        try (SafetensorsFile golden = SafetensorsFile.open(GOLDEN)) {
            List<List<TensorSource>> parts = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                parts.add(new ArrayList<>());
            }
            int next = 0;
            for (StoredTensor tensor : golden.tensors()) {
                map.put(tensor.name(), "part-" + next % 3 + ".safetensors");
                parts.get(next++ % 3).add(tensor);
            }
            for (TensorSource tensor : more) {
                map.put(tensor.name(), "part-2.safetensors");
                parts.get(2).add(tensor);
            }
            for (int i = 0; i < 3; i++) {
                SafetensorsWriter.write(
                        folder.resolve("part-" + i + ".safetensors"), Map.of(), parts.get(i));
            }
        }
        Files.writeString(indexFile(), index(map));
        return map;
    }

    private Path indexFile() {
        return folder.resolve("model.safetensors.index.json");
    }

    private static String index(Map<String, String> map) {
        return map.entrySet().stream()
                .map(entry -> "\"%s\": \"%s\"".formatted(entry.getKey(), entry.getValue()))
                .collect(
                        Collectors.joining(
                                ", ",
                                "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {",
                                "}}"));
    }
}
