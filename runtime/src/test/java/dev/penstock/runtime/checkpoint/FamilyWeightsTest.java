package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.GoldenFamily;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FamilyWeightsTest {
    @TempDir Path folder;

    @ParameterizedTest
    @ValueSource(
            strings = {
                "llama",
                "llama3",
                "mistral",
                "qwen2",
                "qwen3",
                "gpt2-variants",
                "gpt3",
                "retnet",
                "retnet-mixed",
                "bert-post-ln",
                "bert-pre-ln"
            })
    void whatIsImportedIsExportedBitForBit(String family) {
        var golden = new GoldenFamily(family);
        Path original = golden.path("model.safetensors");
        Path written = folder.resolve("model.safetensors");

        try (HuggingFaceWeights weights = HuggingFaceWeights.open(golden.folder())) {
            weights.requireParameters(golden.config());
            HuggingFaceExport.write(written, golden.config(), weights);
        }

        assertThat(ModelConfig.read(folder.resolve("config.json"))).isEqualTo(golden.config());
        try (SafetensorsFile before = SafetensorsFile.open(original);
                SafetensorsFile after = SafetensorsFile.open(written)) {
            assertThat(after.tensors()).hasSameSizeAs(before.tensors());
            for (StoredTensor tensor : before.tensors()) {
                String bare = golden.config().family().bareName(tensor.name());
                StoredTensor again = after.find(tensor.name()).orElseGet(() -> after.tensor(bare));
                assertThat(again.shape()).isEqualTo(tensor.shape());
                assertThat(again.data().mismatch(tensor.data())).as(tensor.name()).isEqualTo(-1);
            }
        }
    }

    /** The golden tests read the same parameters with code of their own. */
    @ParameterizedTest
    @ValueSource(strings = {"llama", "qwen2", "qwen3"})
    void parametersAreThoseOfTheGoldenRun(String family) {
        var golden = new GoldenFamily(family);
        try (HuggingFaceWeights weights = HuggingFaceWeights.open(golden.folder())) {
            golden.config()
                    .parameters()
                    .forEach(
                            (name, shape) -> {
                                TensorPiece all = TensorPiece.all(shape);
                                float[] expected = new float[(int) all.elements()];
                                float[] actual = new float[(int) all.elements()];
                                golden.initial().fill(name, all, MemorySegment.ofArray(expected));
                                assertThat(weights.fill(name, all, MemorySegment.ofArray(actual)))
                                        .isTrue();
                                assertThat(actual).as(name).containsExactly(expected);
                            });
        }
    }

    @Test
    void halfPrecisionKeepsItsTypeAndMixedTypesBecomeOne() throws IOException {
        var golden = new GoldenFamily("llama");
        Path copy = folder.resolve("half");
        Files.createDirectories(copy);
        Files.copy(golden.path("config.json"), copy.resolve("config.json"));
        try (SafetensorsFile file = SafetensorsFile.open(golden.path("model.safetensors"));
                Arena arena = Arena.ofShared()) {
            List<StoredTensor> tensors = new ArrayList<>();
            for (StoredTensor tensor : file.tensors()) {
                boolean single = tensor.name().endsWith("layers.1.self_attn.q_proj.weight");
                tensors.add(single ? tensor : bf16(tensor, arena));
            }
            SafetensorsWriter.write(copy.resolve("model.safetensors"), Map.of(), tensors);
        }

        try (HuggingFaceWeights weights = HuggingFaceWeights.open(copy)) {
            assertThat(weights.find("h.0.attn.c_attn.weight").orElseThrow().type())
                    .isEqualTo(StoredType.BF16);
            assertThat(weights.find("h.1.attn.c_attn.weight").orElseThrow().type())
                    .isEqualTo(StoredType.F32);
        }
    }

    private static StoredTensor bf16(StoredTensor tensor, Arena arena) {
        float[] values = tensor.toFloats();
        short[] halves = new short[values.length];
        for (int i = 0; i < halves.length; i++) {
            halves[i] = (short) (Float.floatToIntBits(values[i]) >> 16);
        }
        MemorySegment data = arena.allocate(2L * halves.length, 8);
        data.copyFrom(MemorySegment.ofArray(halves));
        return new StoredTensor(tensor.name(), StoredType.BF16, tensor.shape(), data);
    }

    @Test
    void everythingThatDoesNotFitIsToldWithBothNames() throws IOException {
        var golden = new GoldenFamily("llama");
        Path copy = folder.resolve("broken");
        Files.createDirectories(copy);
        Files.copy(golden.path("config.json"), copy.resolve("config.json"));
        try (SafetensorsFile file = SafetensorsFile.open(golden.path("model.safetensors"))) {
            List<StoredTensor> tensors = new ArrayList<>();
            for (StoredTensor tensor : file.tensors()) {
                if (tensor.name().equals("model.layers.0.self_attn.k_proj.weight")) {
                    continue;
                }
                boolean turned = tensor.name().equals("model.layers.1.mlp.up_proj.weight");
                tensors.add(
                        turned
                                ? new StoredTensor(
                                        tensor.name(),
                                        tensor.type(),
                                        tensor.shape().reversed(),
                                        tensor.data())
                                : tensor);
            }
            tensors.add(StoredTensor.ofFloats("model.surplus", List.of(1), new float[1]));
            SafetensorsWriter.write(copy.resolve("model.safetensors"), Map.of(), tensors);
        }

        try (HuggingFaceWeights weights = HuggingFaceWeights.open(copy)) {
            assertThatThrownBy(() -> weights.requireParameters(golden.config()))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContainingAll(
                            "model.layers.0.self_attn.k_proj.weight (h.0.attn.c_attn.weight):"
                                    + " expected [16, 32], got nothing",
                            "model.layers.1.mlp.up_proj.weight (h.1.mlp.c_fc.weight): expected"
                                    + " [88, 32], got [32, 88]",
                            "surplus: expected none, got [1]");
            ModelConfig gpt2 = ModelConfig.gpt2(64, 16, 32, 2, 4, true);
            assertThatThrownBy(() -> weights.requireParameters(gpt2))
                    .hasMessageContaining("expected a gpt2, got a llama; try model.family = llama");
        }
    }
}
