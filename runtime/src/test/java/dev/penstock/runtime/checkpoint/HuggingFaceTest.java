package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HuggingFaceTest {
    private static final Path GOLDEN = Path.of("src/test/resources/golden");
    private static final ModelConfig TIED = ModelConfig.gpt2(64, 16, 32, 2, 4, true);
    private static final ModelConfig UNTIED = ModelConfig.gpt2(64, 16, 32, 2, 4, false);

    @TempDir Path folder;

    @Test
    void exportedWeightsComeBackWithTheirConfig() {
        try (HuggingFaceWeights golden =
                HuggingFaceWeights.open(GOLDEN.resolve("tied.init.safetensors"))) {
            HuggingFaceExport.write(folder.resolve("model/model.safetensors"), TIED, golden);

            try (HuggingFaceWeights back = HuggingFaceWeights.open(folder.resolve("model"))) {
                back.requireParameters(TIED);
                assertThat(back.config()).contains(TIED);
                for (StoredTensor tensor : tensors(golden)) {
                    StoredTensor same = tensor(back, tensor.name());
                    assertThat(same.data().mismatch(tensor.data())).isEqualTo(-1);
                }
            }
            assertThat(folder.resolve("model").toFile().list())
                    .containsExactlyInAnyOrder("model.safetensors", "config.json");
        }
    }

    /** Where nothing is said, transformers takes 50256 for any GPT-2, and 2 for any Llama. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\"}} | 4 | 5",
                "{\"eos_token\": \"</s>\"} | null | 5",
                "{\"eos_token\": null} | null | null",
                "{\"eos_token\": \"<none>\"} | null | null",
            })
    void theConfigSaysWhichTokensBeginAndEndAText(String names, String bos, String eos)
            throws IOException {
        Path weights = folder.resolve("model.safetensors");
        Map<String, String> texts =
                Map.of(
                        "tokenizer.json",
                        "{\"added_tokens\": [{\"id\": 5, \"content\": \"</s>\"}],"
                                + " \"model\": {\"vocab\": {\"<s>\": 4, \"null\": 9}}}",
                        "tokenizer_config.json",
                        names);

        try (HuggingFaceWeights golden =
                HuggingFaceWeights.open(GOLDEN.resolve("tied.init.safetensors"))) {
            HuggingFaceExport.write(weights, TIED, golden, WeightsExport.Form.AS_STORED, texts);
        }

        assertThat(Files.readString(folder.resolve("config.json")))
                .contains("\"bos_token_id\" : " + bos, "\"eos_token_id\" : " + eos);
        assertThat(ModelConfig.read(folder.resolve("config.json"))).isEqualTo(TIED);
    }

    @Test
    void aHeadOfItsOwnIsNamedAsTransformersNamesIt() {
        try (HuggingFaceWeights golden =
                HuggingFaceWeights.open(GOLDEN.resolve("untied.init.safetensors"))) {
            Path weights = folder.resolve("model.safetensors");
            HuggingFaceExport.write(weights, UNTIED, golden);

            try (SafetensorsFile file = SafetensorsFile.open(weights);
                    HuggingFaceWeights back = HuggingFaceWeights.open(folder)) {
                assertThat(file.metadata()).containsEntry("format", "pt");
                assertThat(file.find("transformer.h.0.attn.c_attn.weight")).isPresent();
                assertThat(file.find("lm_head.weight")).isPresent();
                back.requireParameters(UNTIED);
            }
        }
    }

    @Test
    void theConfigHasTheFieldsOfGpt2() throws Exception {
        JsonNode json = new ObjectMapper().readTree(TIED.toJson());

        assertThat(json.path("model_type").asText()).isEqualTo("gpt2");
        assertThat(json.path("activation_function").asText()).isEqualTo("gelu_new");
        assertThat(json.path("layer_norm_epsilon").asDouble()).isEqualTo(1e-5);
        assertThat(json.path("n_layer").asInt()).isEqualTo(2);
        assertThat(json.path("n_head").asInt()).isEqualTo(4);
        assertThat(json.path("n_embd").asInt()).isEqualTo(32);
        assertThat(json.path("n_positions").asInt()).isEqualTo(16);
        assertThat(json.path("vocab_size").asInt()).isEqualTo(64);
        assertThat(json.path("tie_word_embeddings").asBoolean()).isTrue();
    }

    @Test
    void readsThePublishedConfigOfGpt2() throws Exception {
        Path config = folder.resolve("config.json");
        Files.writeString(
                config,
                """
                {"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
                 "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256,
                 "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
                 "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
                 "resid_pdrop": 0.1, "summary_activation": null, "vocab_size": 50257}
                """);

        assertThat(ModelConfig.read(config))
                .isEqualTo(ModelConfig.gpt2(50_257, 1024, 768, 12, 12, true));
    }

    @Test
    void saysAllThatAConfigAsksForInVain() throws Exception {
        Path config = folder.resolve("config.json");
        Files.writeString(
                config,
                """
                {"model_type": "gpt2", "activation_function": "relu", "n_layer": "two",
                 "n_embd": 32, "n_head": 4, "n_positions": 16, "n_inner": 0.5}
                """);

        assertThatThrownBy(() -> ModelConfig.read(config))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("vocab_size: expected a whole number from 1, got nothing")
                .hasMessageContaining("n_layer: expected a whole number from 1, got \"two\"")
                .hasMessageContaining("activation_function: expected gelu_new or")
                .hasMessageContaining("or gelu, got \"relu\"")
                .hasMessageContaining("n_inner: expected a whole number from 1, got 0.5");
    }

    @Test
    void saysWhichModelsAreKnown() throws Exception {
        Path config = folder.resolve("config.json");
        Files.writeString(config, "{\"model_type\": \"gpt_neo\", \"n_layer\": \"two\"}");

        assertThatThrownBy(() -> ModelConfig.read(config))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("model_type: expected one of gpt2, llama,")
                .hasMessageContaining("got gpt_neo");
    }

    @Test
    void readsPrefixedHalfPrecisionWeightsWithMasks() {
        Path path = folder.resolve("model.safetensors");
        try (HuggingFaceWeights golden =
                        HuggingFaceWeights.open(GOLDEN.resolve("tied.init.safetensors"));
                Arena arena = Arena.ofConfined()) {
            for (StoredType type : List.of(StoredType.F16, StoredType.BF16)) {
                List<StoredTensor> tensors = new ArrayList<>();
                for (StoredTensor tensor : tensors(golden)) {
                    tensors.add(narrowed("transformer." + tensor.name(), type, tensor));
                }
                MemorySegment mask = Arena.ofAuto().allocate(256);
                for (String name : List.of("attn.bias", "attn.masked_bias")) {
                    tensors.add(
                            new StoredTensor(
                                    "transformer.h.0." + name,
                                    StoredType.BOOL,
                                    List.of(1, 1, 16, 16),
                                    mask));
                }
                Path file = path.resolveSibling(type + ".safetensors");
                SafetensorsWriter.write(file, Map.of(), tensors);

                try (HuggingFaceWeights back = HuggingFaceWeights.open(file)) {
                    back.requireParameters(TIED);
                    MemorySegment filled = arena.allocate(64 * 32 * 4);
                    back.fill("wte.weight", TensorPiece.all(List.of(64, 32)), filled);
                    float[] exact = tensor(golden, "wte.weight").toFloats();
                    for (int i = 0; i < exact.length; i++) {
                        float error = type == StoredType.F16 ? 1f / 1024 : 1f / 128;
                        assertThat(filled.getAtIndex(ValueLayout.JAVA_FLOAT, i))
                                .isCloseTo(
                                        exact[i],
                                        Offset.offset(Math.abs(exact[i]) * error + 1e-6f));
                    }
                }
            }
        }
    }

    private static StoredTensor narrowed(String name, StoredType type, StoredTensor wide) {
        MemorySegment data = Arena.ofAuto().allocate(wide.elements() * 2, 8);
        for (long i = 0; i < wide.elements(); i++) {
            float value = (float) wide.real(i);
            short half =
                    type == StoredType.F16
                            ? Float.floatToFloat16(value)
                            : (short) (Float.floatToRawIntBits(value) >>> 16);
            data.setAtIndex(ValueLayout.JAVA_SHORT, i, half);
        }
        return new StoredTensor(name, type, wide.shape(), data);
    }

    @Test
    void aTiedModelRefusesAnotherHead() {
        try (HuggingFaceWeights untied =
                HuggingFaceWeights.open(GOLDEN.resolve("untied.init.safetensors"))) {
            assertThatThrownBy(() -> untied.requireParameters(TIED))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining("try model.tied = false");
        }
        try (HuggingFaceWeights tied =
                HuggingFaceWeights.open(GOLDEN.resolve("tied.init.safetensors"))) {
            assertThatThrownBy(() -> tied.requireParameters(UNTIED))
                    .hasMessageContaining("lm_head.weight: expected [64, 32], got nothing");
        }
    }

    /** A GPT-2's parameters lie in the file as they are. */
    private static StoredTensor tensor(HuggingFaceWeights weights, String name) {
        return (StoredTensor) weights.find(name).orElseThrow();
    }

    private static List<StoredTensor> tensors(HuggingFaceWeights weights) {
        return weights.tensors().stream().map(facts -> tensor(weights, facts.name())).toList();
    }
}
