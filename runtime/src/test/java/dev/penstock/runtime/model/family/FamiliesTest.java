package dev.penstock.runtime.model.family;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.model.GoldenFamily;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Positions;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FamiliesTest {
    private static final Path FILE = Path.of("config.json");

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
    void theTensorsOfAModelAreThoseOfItsFile(String golden) {
        var model = new GoldenFamily(golden);
        ModelConfig config = model.config();
        Map<String, List<Integer>> expected = new TreeMap<>();
        try (SafetensorsFile file = SafetensorsFile.open(model.path("model.safetensors"))) {
            for (StoredTensor tensor : file.tensors()) {
                expected.put(config.family().bareName(tensor.name()), tensor.shape());
            }
        }

        Map<String, List<Integer>> parts = new TreeMap<>();
        for (StoredPart part : config.family().parts(config.shape())) {
            parts.put(config.family().bareName(part.name()), part.shape());
        }

        assertThat(parts).isEqualTo(expected);
    }

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
    void aModelIsDescribedAsItIsRead(String golden) {
        ModelConfig config = new GoldenFamily(golden).config();

        ModelConfig described = ModelConfig.of(config.family(), config.shape());

        ModelConfig again = read(described.toJson());
        assertThat(again).isEqualTo(config);
        assertThat(again.parameters()).isEqualTo(config.parameters());
    }

    /** The counts that their publishers give. */
    @ParameterizedTest(name = "{0}: {1}")
    @CsvSource({
        "llama-2-7b, 6738415616",
        "llama-3-8b, 8030261248",
        "mistral-7b, 7241732096",
        "qwen2-0.5b, 494032768",
        "qwen3-0.6b, 596049920"
    })
    void publishedModelsHaveAsManyParametersAsTheyClaim(String model, long parameters) {
        ModelShape shape = read(published(model)).shape();

        assertThat(shape.parameters()).isEqualTo(parameters);
    }

    private static String published(String model) {
        return switch (model) {
            case "llama-2-7b" ->
                    """
                    {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096,
                     "intermediate_size": 11008, "num_hidden_layers": 32,
                     "num_attention_heads": 32, "max_position_embeddings": 4096,
                     "rms_norm_eps": 1e-5, "rope_scaling": null, "pretraining_tp": 1,
                     "hidden_act": "silu", "torch_dtype": "float16"}
                    """;
            case "llama-3-8b" ->
                    """
                    {"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096,
                     "intermediate_size": 14336, "num_hidden_layers": 32,
                     "num_attention_heads": 32, "num_key_value_heads": 8,
                     "max_position_embeddings": 8192, "rope_theta": 500000.0,
                     "eos_token_id": [128001, 128009]}
                    """;
            case "mistral-7b" ->
                    """
                    {"model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096,
                     "intermediate_size": 14336, "num_hidden_layers": 32,
                     "num_attention_heads": 32, "num_key_value_heads": 8,
                     "max_position_embeddings": 32768, "sliding_window": 4096}
                    """;
            case "qwen2-0.5b" ->
                    """
                    {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896,
                     "intermediate_size": 4864, "num_hidden_layers": 24,
                     "num_attention_heads": 14, "num_key_value_heads": 2,
                     "max_position_embeddings": 131072, "max_window_layers": 24,
                     "sliding_window": 131072, "use_sliding_window": false,
                     "rope_theta": 1000000.0, "tie_word_embeddings": true}
                    """;
            default ->
                    """
                    {"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024,
                     "intermediate_size": 3072, "num_hidden_layers": 28,
                     "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
                     "max_position_embeddings": 40960, "rope_theta": 1000000,
                     "sliding_window": null, "tie_word_embeddings": true}
                    """;
        };
    }

    /** Of 0.3, 0.01, .. the first is kept, the second blended, the others divided. */
    @Test
    void llama3StretchesLongWavelengthsOnly() {
        var places = (Positions.Rotary) new GoldenFamily("llama3").config().shape().positions();

        double[] stretched = places.frequencies(8);

        double[] plain =
                new Positions.Rotary(1, 500_000, java.util.Optional.empty()).frequencies(8);
        assertThat(stretched[0]).isEqualTo(plain[0]);
        assertThat(stretched[1]).isBetween(plain[1] / 8 * 1.001, plain[1] * 0.999);
        assertThat(stretched[2]).isCloseTo(plain[2] / 8, within(1e-15));
        assertThat(stretched[3]).isCloseTo(plain[3] / 8, within(1e-15));
    }

    @Test
    void windowsAreThoseOfTheFamily() {
        assertThat(windows("mistral", "{}")).containsExactly(4096, 4096);
        assertThat(windows("mistral", "{\"sliding_window\": null}")).isEmpty();
        assertThat(windows("qwen2", "{\"sliding_window\": 7}")).isEmpty();
        assertThat(
                        windows(
                                "qwen2",
                                "{\"sliding_window\": 7, \"use_sliding_window\": true,"
                                        + " \"max_window_layers\": 1}"))
                .containsExactly(BlockDesign.ALL, 7);
        assertThat(
                        windows(
                                "qwen3",
                                "{\"sliding_window\": 7, \"layer_types\": [\"sliding_attention\","
                                        + " \"full_attention\"]}"))
                .containsExactly(7, BlockDesign.ALL);
    }

    /** As in transformers, where 0 says that no layer is below those that slide. */
    @Test
    void theFirstLayerThatSlidesMayBeTheFirst() {
        String sliding = "{\"sliding_window\": 7, \"use_sliding_window\": true, ";

        assertThat(windows("qwen2", sliding + "\"max_window_layers\": 0}")).containsExactly(7, 7);
        assertThat(windows("qwen3", sliding + "\"max_window_layers\": 2}"))
                .containsExactly(BlockDesign.ALL, BlockDesign.ALL);
        assertThatThrownBy(() -> windows("qwen2", "{\"max_window_layers\": -1}"))
                .hasMessageContaining("max_window_layers: expected a whole number from 0, got -1");
    }

    /** A key that is left out means what transformers takes for it; null means all heads. */
    @ParameterizedTest
    @CsvSource({"llama, 64, 64", "mistral, 64, 8", "qwen2, 64, 32", "qwen3, 64, 32"})
    void headsOfKeysThatAreLeftOutAreAsMany(String type, int heads, int keys) {
        assertThat(keysLeftOut(type, heads)).isEqualTo(keys);
        String none = "{\"num_attention_heads\": 64, \"num_key_value_heads\": null}";
        assertThat(read(small(type, none)).shape().block().heads().keys()).isEqualTo(64);
    }

    @Test
    void headsOfKeysThatAreLeftOutAndDoNotDivideAreRefusedByName() {
        assertThatThrownBy(() -> keysLeftOut("mistral", 4))
                .hasMessageContaining(
                        "num_key_value_heads: expected a divisor of num_attention_heads = 4, got"
                                + " nothing, which means 8");
    }

    private static int keysLeftOut(String type, int heads) {
        String json = small(type, "{\"num_attention_heads\": %d}".formatted(heads));
        return read(json.replace("\"num_key_value_heads\":2,", "")).shape().block().heads().keys();
    }

    /** Keys that were not read after it are not called unknown. */
    @ParameterizedTest
    @CsvSource({"llama, rms_norm_eps", "qwen3, rms_norm_eps", "gpt2, layer_norm_epsilon"})
    void aBadEpsilonIsTheOnlyProblem(String type, String key) {
        String json =
                type.equals("gpt2")
                        ? "{\"model_type\": \"gpt2\", \"vocab_size\": 9, \"n_positions\": 8,"
                                + " \"n_embd\": 8, \"n_layer\": 2, \"n_head\": 2}"
                        : small(type, "{}");

        for (String bad : List.of("5", "0", "-1e-5", "\"small\"")) {
            assertThatThrownBy(() -> read(with(json, "{\"%s\": %s}".formatted(key, bad))))
                    .hasMessageMatching(
                            ".*not a %s that Penstock supports: %s: expected a number above 0[^;]*"
                                    .formatted(type, key));
        }
    }

    private static List<Integer> windows(String type, String more) {
        return read(small(type, more)).shape().block().windows();
    }

    @Test
    void anUnknownTypeIsToldWhatIsKnownAndWhatIsNearest() {
        assertThatThrownBy(() -> read("{\"model_type\": \"qwen2_5\"}"))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining(
                        "model_type: expected one of gpt2, llama, mistral, qwen2, qwen3, retnet,"
                                + " bert, megatron-bert, got qwen2_5; try qwen2");
        assertThatThrownBy(() -> read("{\"model_type\": \"mamba-hybrid\"}"))
                .hasMessageEndingWith("got mamba-hybrid");
        assertThatThrownBy(() -> read("{}")).hasMessageContaining("got nothing");
        assertThatThrownBy(() -> read("[1]")).hasMessageContaining("expected a JSON object");
    }

    @Test
    void everythingThatIsNotComputedIsRefusedByNameAtOnce() {
        assertThatThrownBy(
                        () ->
                                read(
                                        small(
                                                "llama",
                                                """
                                                {"attention_bias": true, "mlp_bias": true,
                                                 "hidden_act": "gelu", "hidden_size": 30,
                                                 "num_key_value_heads": 3, "vocab_size": -1,
                                                 "quantization_config": {"bits": 4},
                                                 "sliding_window": 9,
                                                 "rope_scaling": {"rope_type": "yarn",
                                                                  "beta_fast": 32}}
                                                """)))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContainingAll(
                        "not a llama that Penstock supports",
                        "attention_bias: expected false, got true",
                        "mlp_bias: expected false, got true",
                        "hidden_act: expected silu, got \"gelu\"",
                        "num_attention_heads: expected a divisor of hidden_size = 30, got 4",
                        "num_key_value_heads: expected a divisor of num_attention_heads = 4, got 3",
                        "vocab_size: expected a whole number from 1, got -1",
                        "quantization_config: expected no such key",
                        "sliding_window: expected no such key",
                        "rope_scaling.rope_type: expected default or llama3, got \"yarn\"",
                        "rope_scaling.beta_fast: expected no such key");
    }

    @Test
    void whatAGpt2IsAskedForIsComputedOrRefused() {
        String base =
                """
                {"model_type": "gpt2", "vocab_size": 9, "n_positions": 8, "n_embd": 8,
                 "n_layer": 2, "n_head": 2, "attn_pdrop": 0.1, "summary_type": "cls_index"}
                """;
        assertThat(read(base).shape()).isEqualTo(ModelShape.gpt2(9, 8, 8, 2, 2, true));
        assertThatThrownBy(
                        () ->
                                read(
                                        with(
                                                base,
                                                """
                                                {"scale_attn_weights": false,
                                                 "activation_function": "relu",
                                                 "attention_layers": ["local"],
                                                 "window_size": 4, "add_cross_attention": true}
                                                """)))
                .hasMessageContainingAll(
                        "scale_attn_weights: expected true, got false",
                        "activation_function: expected gelu_new or gelu_pytorch_tanh or gelu",
                        "attention_layers: expected one word for each of 2 layers",
                        "add_cross_attention: expected false, got true");
    }

    /** Else a line of text would fill the memory with names of tensors. */
    @ParameterizedTest
    @ValueSource(strings = {"llama", "mistral", "qwen3"})
    void moreLayersThanAnyModelHasAreRefused(String type) {
        assertThatThrownBy(() -> read(small(type, "{\"num_hidden_layers\": 2000000000}")))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("num_hidden_layers: expected at most 10000 layers");
    }

    /** transformers slides in all layers of a mistral, whatever else its configuration says. */
    @Test
    void aMistralWhoseLayersDifferIsRefused() {
        String mixed =
                """
                {"sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"]}
                """;

        assertThatThrownBy(() -> read(small("mistral", mixed)))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("layer_types: expected one word for all layers");
        assertThat(read(small("qwen2", mixed)).shape().block().windows()).containsExactly(0, 4);
    }

    @Test
    void aThetaBesideParametersWithoutOneIsTheirs() {
        String json =
                small(
                        "llama",
                        "{\"rope_theta\": 500000, \"rope_parameters\": {\"rope_type\": \"default\"}}");

        assertThat(((Positions.Rotary) read(json).shape().positions()).theta()).isEqualTo(500_000);
    }

    /** The tensors are the same, and what is computed with them is not. */
    @Test
    void whatNoTensorShowsIsCompared() {
        ModelConfig one = read(small("llama", "{\"rope_theta\": 500000}"));
        ModelConfig other =
                read(
                        small(
                                "llama",
                                """
                                {"rms_norm_eps": 1e-5, "num_attention_heads": 8, "head_dim": 2,
                                 "num_key_value_heads": 4, "max_position_embeddings": 64,
                                 "rope_scaling": {"rope_type": "llama3", "factor": 8,
                                     "low_freq_factor": 1, "high_freq_factor": 4,
                                     "original_max_position_embeddings": 16}}
                                """));

        assertThat(one.differences(one)).isEmpty();
        assertThat(one.parameters()).isEqualTo(other.parameters());
        assertThat(one.differences(other))
                .containsExactly(
                        "model.heads: the weights have 4, the run has 8",
                        "model.key-heads: the weights have 2, the run has 4",
                        "model.head-size: the weights have 4, the run has 2",
                        "model.epsilon: the weights have 1.0E-6, the run has 1.0E-5",
                        "model.theta: the weights have 500000.0, the run has 10000.0",
                        "model.stretch: the weights have [], the run has [8.0, 1.0, 4.0, 16]");
    }

    @Test
    void whatIsNotUnderstoodIsKept() {
        String json = small("llama", "{\"bos_token_id\": 17, \"transformers_version\": \"4.9\"}");

        assertThat(read(json).toJson()).contains("\"bos_token_id\" : 17", "\"4.9\"");
    }

    private static String small(String type, String more) {
        return with(
                """
                {"model_type": "%s", "vocab_size": 9, "hidden_size": 8, "intermediate_size": 12,
                 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                 "head_dim": 4, "max_position_embeddings": 32}
                """
                        .formatted(type),
                more);
    }

    private static String with(String json, String more) {
        try {
            var mapper = new ObjectMapper();
            ObjectNode base = (ObjectNode) mapper.readTree(json);
            base.setAll((ObjectNode) mapper.readTree(more));
            if (more.contains("hidden_size")) {
                base.remove("head_dim");
            }
            return base.toString();
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    private static ModelConfig read(String json) {
        try {
            return ModelConfig.of(FILE, new ObjectMapper().readTree(json));
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }
}
