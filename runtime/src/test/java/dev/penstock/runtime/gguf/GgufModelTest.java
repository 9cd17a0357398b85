package dev.penstock.runtime.gguf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.gguf.GgufReader.Tensor;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.TensorSource;
import dev.penstock.runtime.tokenizer.BytesTokenizer;
import dev.penstock.runtime.tokenizer.Gpt2Tokenizer;
import dev.penstock.runtime.vocabulary.Vocabulary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What is written is read back by {@link GgufReader}, which knows only the format's description.
 */
class GgufModelTest {
    private static final Path GOLDEN = Path.of("src/test/resources/golden-models");
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir Path folder;

    @Test
    void gpt2HasItsMatricesTransposed() throws IOException {
        ObjectNode config = config("gpt2-variants");
        config.put("activation_function", "gelu_new");
        config.put("scale_attn_by_inverse_layer_idx", false);
        GgufReader gguf = written("gpt2-variants", config, GgufModel.Form.F32);

        try (SafetensorsFile model = model("gpt2-variants")) {
            assertThat(gguf.tensors).hasSameSizeAs(model.tensors());
            float[] published = model.tensor("transformer.h.1.attn.c_attn.weight").toFloats();
            Tensor own = gguf.tensor("blk.1.attn_qkv.weight");
            assertThat(own.dimensions()).containsExactly(32, 96);
            for (int in = 0; in < 32; in++) {
                for (int out = 0; out < 96; out++) {
                    assertThat(own.values()[out * 32 + in]).isEqualTo(published[in * 96 + out]);
                }
            }
            assertSame(model, "transformer.wte.weight", gguf, "token_embd.weight");
            assertSame(model, "transformer.wpe.weight", gguf, "position_embd.weight");
            assertSame(model, "transformer.ln_f.bias", gguf, "output_norm.bias");
            assertSame(model, "transformer.h.2.mlp.c_fc.bias", gguf, "blk.2.ffn_up.bias");
        }
        assertThat(gguf.metadata)
                .containsEntry("general.architecture", "gpt2")
                .containsEntry("general.file_type", 0)
                .containsEntry("gpt2.block_count", 3)
                .containsEntry("gpt2.context_length", 16)
                .containsEntry("gpt2.embedding_length", 32)
                .containsEntry("gpt2.feed_forward_length", 80)
                .containsEntry("gpt2.attention.head_count", 4)
                .containsEntry("gpt2.attention.layer_norm_epsilon", 1e-5f);
    }

    /** Rotary positions turn neighbours there, not halves: element i of a head of 8 goes to 2 i. */
    @Test
    void llamaHasItsQueriesAndKeysRearranged() throws IOException {
        GgufReader gguf = written("llama", config("llama"), GgufModel.Form.F32);

        try (SafetensorsFile model = model("llama")) {
            for (Map.Entry<String, Integer> heads : Map.of("q", 4, "k", 2).entrySet()) {
                float[] published =
                        model.tensor(
                                        "model.layers.0.self_attn.%s_proj.weight"
                                                .formatted(heads.getKey()))
                                .toFloats();
                Tensor own = gguf.tensor("blk.0.attn_%s.weight".formatted(heads.getKey()));
                IntUnaryOperator place =
                        row -> row / 8 * 8 + (row % 8 < 4 ? 2 * (row % 8) : 2 * (row % 8) - 7);
                for (int row = 0; row < heads.getValue() * 8; row++) {
                    for (int in = 0; in < 32; in++) {
                        assertThat(own.values()[place.applyAsInt(row) * 32 + in])
                                .isEqualTo(published[row * 32 + in]);
                    }
                }
            }
            assertSame(
                    model, "model.layers.1.self_attn.v_proj.weight", gguf, "blk.1.attn_v.weight");
            assertSame(model, "model.layers.1.mlp.down_proj.weight", gguf, "blk.1.ffn_down.weight");
            assertSame(model, "lm_head.weight", gguf, "output.weight");
        }
        assertThat(gguf.metadata)
                .containsEntry("general.architecture", "llama")
                .containsEntry("llama.attention.head_count_kv", 2)
                .containsEntry("llama.rope.dimension_count", 8)
                .containsEntry("llama.rope.freq_base", 10_000f)
                .containsEntry("llama.vocab_size", 64);
        assertThat(gguf.tensors).doesNotContainKey("rope_freqs.weight");
    }

    @Test
    void llama3SaysItsFrequenciesInATensor() throws IOException {
        GgufReader gguf = written("llama3", config("llama3"), GgufModel.Form.F16);

        float[] factors = gguf.tensor("rope_freqs.weight").values();
        assertThat(factors).hasSize(4);
        assertThat(factors[0]).isEqualTo(1);
        assertThat(factors[1]).isBetween(1.01f, 7.99f);
        assertThat(factors[2]).isEqualTo(8);
        assertThat(factors[3]).isEqualTo(8);
        assertThat(gguf.tensors).doesNotContainKey("output.weight");
        assertThat(gguf.tensor("blk.0.attn_norm.weight").type()).isZero();
        assertThat(gguf.tensor("token_embd.weight").type()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"qwen2", "qwen3"})
    void qwenIsWrittenAsItIs(String name) throws IOException {
        GgufReader gguf = written(name, config(name), GgufModel.Form.F32);

        try (SafetensorsFile model = model(name)) {
            String layer = "model.layers.1.self_attn.";
            assertSame(model, layer + "q_proj.weight", gguf, "blk.1.attn_q.weight");
            if (name.equals("qwen2")) {
                assertSame(model, layer + "k_proj.bias", gguf, "blk.1.attn_k.bias");
            } else {
                assertSame(model, layer + "k_norm.weight", gguf, "blk.1.attn_k_norm.weight");
                assertThat(gguf.metadata)
                        .containsEntry("qwen3.attention.key_length", 12)
                        .containsEntry("qwen3.rope.freq_base", 1e6f);
            }
            assertThat(gguf.tensors).hasSameSizeAs(model.tensors());
        }
    }

    /** Half a step of the type is the most that a value moves. */
    @ParameterizedTest
    @EnumSource(GgufModel.Form.class)
    void everyTypeIsNearTheExactValue(GgufModel.Form form) throws IOException {
        GgufReader exact = written("llama", config("llama"), GgufModel.Form.F32);
        GgufReader gguf = written("llama", config("llama"), form);

        gguf.tensors.forEach(
                (name, tensor) -> {
                    float[] values = exact.tensor(name).values();
                    for (int i = 0; i < values.length; i++) {
                        float most = 0;
                        for (int j = i / 32 * 32;
                                j < Math.min(values.length, i / 32 * 32 + 32);
                                j++) {
                            most = Math.max(most, Math.abs(values[j]));
                        }
                        double step =
                                switch (tensor.type()) {
                                    case 0 -> 0;
                                    case 1 -> Math.abs(values[i]) / 2048 + 3e-8;
                                    case 30 -> Math.abs(values[i]) / 256;
                                    // the step itself is rounded to F16
                                    default -> most / 127 * (0.5 + 127.0 / 2048);
                                };
                        assertThat((double) Math.abs(tensor.values()[i] - values[i]))
                                .as("%s[%d] of type %d", name, i, tensor.type())
                                .isLessThanOrEqualTo(step);
                    }
                });
        int type = gguf.tensor("blk.0.attn_q.weight").type();
        assertThat(type)
                .isEqualTo(
                        switch (form) {
                            case F32 -> 0;
                            case F16 -> 1;
                            case BF16 -> 30;
                            case Q8_0 -> 8;
                        });
        // rows of 88 are no blocks of 32
        assertThat(gguf.tensor("blk.0.ffn_down.weight").type())
                .isEqualTo(form == GgufModel.Form.Q8_0 ? 1 : type);
    }

    @Test
    void whatEnginesWouldComputeInAnotherWayIsRefused() throws IOException {
        assertThatThrownBy(
                        () -> written("gpt2-variants", config("gpt2-variants"), GgufModel.Form.F32))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("activation_function: expected gelu_new")
                .hasMessageContaining("scale_attn_by_inverse_layer_idx: expected false");
        assertThatThrownBy(() -> written("mistral", config("mistral"), GgufModel.Form.F32))
                .hasMessageContaining("sliding_window: expected none below");
        ObjectNode yarn = config("llama");
        yarn.putObject("rope_scaling").put("rope_type", "yarn");
        assertThatThrownBy(() -> written("llama", yarn, GgufModel.Form.F32))
                .hasMessageContaining("rope_type: expected default, linear or llama3, got yarn");
        ObjectNode bert = config("llama").put("model_type", "bert");
        assertThatThrownBy(() -> written("llama", bert, GgufModel.Form.F32))
                .hasMessageContaining("expected a model_type of gpt2, llama");
        ObjectNode small = config("llama").put("vocab_size", 200);
        assertThatThrownBy(() -> written("llama", small, GgufModel.Form.F32, new BytesTokenizer()))
                .hasMessageContaining("vocab_size: expected at least the tokenizer's 256 tokens");
        TensorSource stray = StoredTensor.ofFloats("model.stray.weight", List.of(1), new float[1]);
        assertThatThrownBy(
                        () ->
                                GgufModel.of(
                                        folder,
                                        config("llama"),
                                        List.of(stray),
                                        none(),
                                        GgufModel.Form.F32))
                .hasMessageContaining("model.stray.weight: GGUF's llama has no such tensor");
    }

    @Test
    void gpt2sMergesFollowFromItsTokens() {
        Vocabulary gpt2 = Vocabulary.of(Gpt2Tokenizer.load());

        assertThat(gpt2.tokens()).hasSize(50_257);
        assertThat(gpt2.tokens().get(50_256)).isEqualTo("<|endoftext|>");
        assertThat(gpt2.tokens().get(262)).isEqualTo("Ġthe");
        assertThat(gpt2.kinds().get(50_256)).isEqualTo(Vocabulary.Kind.CONTROL);
        // the first and the last lines of the published merges.txt
        assertThat(gpt2.merges()).hasSize(50_000);
        assertThat(gpt2.merges().subList(0, 5)).containsExactly("Ġ t", "Ġ a", "h e", "i n", "r e");
        assertThat(gpt2.merges().getLast()).isEqualTo("Ġg azed");
        assertThat(gpt2.specials()).containsEntry("eos", 50_256);
    }

    @Test
    void theTokenizerIsWrittenWithTokensForEveryRow() throws IOException {
        ObjectNode config = config("llama").put("vocab_size", 300);
        GgufReader gguf = written("llama", config, GgufModel.Form.F32, new BytesTokenizer());

        List<?> tokens = (List<?>) gguf.value("tokenizer.ggml.tokens");
        List<?> types = (List<?>) gguf.value("tokenizer.ggml.token_type");
        assertThat(tokens).hasSize(300);
        assertThat(tokens.get('a')).isEqualTo("a");
        assertThat(tokens.get(' ')).isEqualTo("Ġ");
        assertThat(tokens.get(299)).isEqualTo("[PAD299]");
        assertThat(types.get('a')).isEqualTo(1);
        assertThat(types.get(299)).isEqualTo(5);
        assertThat(gguf.metadata)
                .containsEntry("tokenizer.ggml.model", "gpt2")
                .containsEntry("tokenizer.ggml.pre", "gpt-2")
                .containsEntry("tokenizer.ggml.merges", List.of())
                .doesNotContainKey("tokenizer.ggml.eos_token_id");
    }

    @Test
    void aFoldersTokenizerIsRead() throws IOException {
        Files.writeString(
                folder.resolve("vocab.json"),
                "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<|endoftext|>\": 3}");
        Files.writeString(folder.resolve("merges.txt"), "#version: 0.2\na b\n");

        Vocabulary older = Vocabulary.in(folder).orElseThrow();

        assertThat(older.tokens()).containsExactly("a", "b", "ab", "<|endoftext|>");
        assertThat(older.merges()).containsExactly("a b");
        assertThat(older.specials()).containsEntry("eos", 3);
        Files.writeString(
                folder.resolve("tokenizer.json"),
                """
                {"added_tokens": [{"id": 3, "content": "<s>", "special": true}], "normalizer": null,
                 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                   {"type": "Split", "pattern": {"Regex": "%s"}, "behavior": "Isolated"},
                   {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
                 "post_processor": {"type": "TemplateProcessing",
                   "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {}}]},
                 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}}
                """
                        .formatted(
                                "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"));
        Files.writeString(folder.resolve("tokenizer_config.json"), "{\"bos_token\": \"<s>\"}");

        Vocabulary newer = Vocabulary.in(folder).orElseThrow();

        assertThat(newer.splitter()).isEqualTo("llama-bpe");
        assertThat(newer.tokens()).containsExactly("a", "b", "ab", "<s>");
        assertThat(newer.kinds().get(3)).isEqualTo(Vocabulary.Kind.CONTROL);
        assertThat(newer.merges()).containsExactly("a b");
        assertThat(newer.specials()).containsEntry("bos", 3);
        assertThat(newer.addsBeginning()).isTrue();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"model\": {\"type\": \"Unigram\"}} | expected a model of type BPE",
                "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true}} | SentencePiece",
                "{\"model\": {\"type\": \"BPE\"}} | expected a byte-level pre_tokenizer",
                "{\"model\": | not JSON",
            })
    void anotherKindOfTokenizerSaysWhatItIs(String json, String problem) throws IOException {
        Files.writeString(folder.resolve("tokenizer.json"), json);

        assertThatThrownBy(() -> Vocabulary.in(folder))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining(problem);
    }

    private static void assertSame(
            SafetensorsFile model, String published, GgufReader gguf, String own) {
        Tensor tensor = gguf.tensor(own);
        assertThat(tensor.values()).isEqualTo(model.tensor(published).toFloats());
        long[] dimensions =
                model.tensor(published).shape().reversed().stream()
                        .mapToLong(Integer::longValue)
                        .toArray();
        assertThat(tensor.dimensions()).isEqualTo(dimensions);
    }

    private static Vocabulary none() {
        return new Vocabulary("gpt-2", List.of(), List.of(), List.of(), Map.of(), false);
    }

    private GgufReader written(String name, ObjectNode config, GgufModel.Form form)
            throws IOException {
        return written(name, config, form, none());
    }

    private GgufReader written(
            String name, ObjectNode config, GgufModel.Form form, BytesTokenizer tokenizer)
            throws IOException {
        return written(name, config, form, Vocabulary.of(tokenizer));
    }

    private GgufReader written(
            String name, ObjectNode config, GgufModel.Form form, Vocabulary vocabulary)
            throws IOException {
        Path file = Files.createTempDirectory(folder, "gguf").resolve("model.gguf");
        try (SafetensorsFile model = model(name)) {
            List<TensorSource> tensors = new ArrayList<>(model.tensors());
            GgufModel gguf = GgufModel.of(folder, config, tensors, vocabulary, form);
            gguf.write(file);
            assertThat(gguf.bytes()).isEqualTo(Files.size(file));
        }
        return new GgufReader(file);
    }

    private static SafetensorsFile model(String name) {
        return SafetensorsFile.open(GOLDEN.resolve(name).resolve("model.safetensors"));
    }

    private static ObjectNode config(String name) throws IOException {
        return (ObjectNode)
                JSON.readTree(Files.readString(GOLDEN.resolve(name).resolve("config.json")));
    }
}
