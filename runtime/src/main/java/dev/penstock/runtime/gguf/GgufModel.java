package dev.penstock.runtime.gguf;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.model.family.ConfigJson;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.TensorSource;
import dev.penstock.runtime.vocabulary.Vocabulary;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * A model about to be written as GGUF, made of what a Hugging Face folder has: {@code config.json},
 * tensors under the names there, and a tokenizer. Any family with a table in {@link
 * GgufArchitecture}.
 */
public final class GgufModel {
    private static final String PREFIX = "transformer.";
    private static final String POSITIONS = "position_embd.weight";
    private static final int SHOWN = 20;

    /** GGUF's words for special tokens. */
    private static final Map<String, String> SPECIALS =
            new TreeMap<>(Map.of("bos", "bos", "eos", "eos", "unk", "unknown", "pad", "padding"));

    private final Map<String, GgufValue> metadata;
    private final List<GgufTensor> tensors;

    private GgufModel(Map<String, GgufValue> metadata, List<GgufTensor> tensors) {
        this.metadata = metadata;
        this.tensors = tensors;
    }

    /** Types of the weights. Vectors, norms and tables of positions are F32 in each. */
    public enum Form {
        F32(GgufType.F32, 0),
        F16(GgufType.F16, 1),
        BF16(GgufType.BF16, 32),
        /**
         * Blocks of 32 with a common scale; a matrix whose rows are no whole blocks becomes F16.
         */
        Q8_0(GgufType.Q8_0, 7);

        private final GgufType type;
        private final int fileType;

        Form(GgufType type, int fileType) {
            this.type = type;
            this.fileType = fileType;
        }
    }

    /**
     * Translates a model.
     *
     * @param source for messages
     * @param config as in {@code config.json}
     * @param published tensors with Hugging Face's names, shapes and layouts
     * @param vocabulary of the tokenizer; no larger than the model's
     * @throws StoredFileException with all that GGUF has no word for, or that engines would compute
     *     in another way
     */
    public static GgufModel of(
            Path source,
            JsonNode config,
            List<? extends TensorSource> published,
            Vocabulary vocabulary,
            Form form) {
        List<String> problems = new ArrayList<>();
        ConfigJson facts = new ConfigJson(config, problems);
        String modelType = facts.modelType().orElse("");
        GgufArchitecture architecture =
                GgufArchitecture.of(modelType)
                        .orElseThrow(
                                () ->
                                        new StoredFileException(
                                                source,
                                                "expected a model_type of gpt2, llama, mistral,"
                                                        + " qwen2 or qwen3 for GGUF, got '%s'"
                                                                .formatted(modelType)));
        Map<String, GgufValue> metadata = new LinkedHashMap<>();
        metadata.put("general.architecture", new GgufValue.Text(architecture.ggufName()));
        metadata.put("general.type", new GgufValue.Text("model"));
        architecture
                .facts(facts)
                .forEach((key, value) -> metadata.put(architecture.ggufName() + "." + key, value));
        metadata.put("general.file_type", new GgufValue.Count(form.fileType));
        if (form == Form.Q8_0) {
            metadata.put("general.quantization_version", new GgufValue.Count(2));
        }
        int rows = facts.size("vocab_size");
        if (vocabulary.tokens().size() > rows) {
            facts.refuse(
                    "vocab_size",
                    "at least the tokenizer's %d tokens".formatted(vocabulary.tokens().size()),
                    "" + rows);
        }
        metadata.putAll(tokenizer(vocabulary.padded(rows)));
        List<GgufTensor> tensors = tensors(published, architecture, facts, problems, form);
        if (!problems.isEmpty()) {
            throw new StoredFileException(source, "cannot be written as GGUF:" + list(problems));
        }
        return new GgufModel(metadata, tensors);
    }

    private static Map<String, GgufValue> tokenizer(Vocabulary vocabulary) {
        Map<String, GgufValue> values = new LinkedHashMap<>();
        Optional<Vocabulary.Pieces> pieces = vocabulary.pieces();
        String model = pieces.isPresent() ? "llama" : "gpt2";
        values.put("tokenizer.ggml.model", new GgufValue.Text(model));
        values.put("tokenizer.ggml.pre", new GgufValue.Text(vocabulary.splitter()));
        values.put("tokenizer.ggml.tokens", new GgufValue.Texts(vocabulary.tokens()));
        List<Integer> kinds = vocabulary.kinds().stream().map(GgufModel::kind).toList();
        values.put("tokenizer.ggml.token_type", new GgufValue.Numbers(kinds));
        pieces.ifPresentOrElse(
                each -> values.put("tokenizer.ggml.scores", new GgufValue.Reals(each.scores())),
                () ->
                        values.put(
                                "tokenizer.ggml.merges", new GgufValue.Texts(vocabulary.merges())));
        for (Map.Entry<String, String> special : SPECIALS.entrySet()) {
            Integer token = vocabulary.specials().get(special.getKey());
            if (token != null) {
                values.put(
                        "tokenizer.ggml.%s_token_id".formatted(special.getValue()),
                        new GgufValue.Count(token));
            }
        }
        values.put("tokenizer.ggml.add_bos_token", new GgufValue.Flag(vocabulary.addsBeginning()));
        pieces.ifPresent(
                each -> {
                    values.put("tokenizer.ggml.add_eos_token", new GgufValue.Flag(each.addsEnd()));
                    values.put(
                            "tokenizer.ggml.add_space_prefix",
                            new GgufValue.Flag(each.addsSpace()));
                });
        return values;
    }

    private static int kind(Vocabulary.Kind kind) {
        return switch (kind) {
            case NORMAL -> 1;
            case UNKNOWN -> 2;
            case CONTROL -> 3;
            case USER_DEFINED -> 4;
            case UNUSED -> 5;
            case BYTE -> 6;
        };
    }

    private static List<GgufTensor> tensors(
            List<? extends TensorSource> published,
            GgufArchitecture architecture,
            ConfigJson facts,
            List<String> problems,
            Form form) {
        boolean tied = facts.flagOr("tie_word_embeddings", false);
        List<GgufTensor> tensors = new ArrayList<>();
        for (TensorSource each : published) {
            String name = each.name();
            TensorSource bare =
                    name.startsWith(PREFIX) ? each.named(name.substring(PREFIX.length())) : each;
            if (tied && bare.name().equals("lm_head.weight")) {
                continue; // engines use the embedding where there is no head
            }
            Optional<TensorSource> translated = architecture.translated(bare, facts);
            if (translated.isPresent()) {
                tensors.add(tensor(translated.get(), form));
            } else {
                problems.add(
                        "%s: GGUF's %s has no such tensor"
                                .formatted(name, architecture.ggufName()));
            }
        }
        architecture.more(facts).ifPresent(more -> tensors.add(tensor(more, form)));
        return tensors;
    }

    private static GgufTensor tensor(TensorSource source, Form form) {
        boolean exact = source.shape().size() < 2 || source.name().equals(POSITIONS);
        boolean blocks = source.shape().getLast() % form.type.blockElements() == 0;
        GgufType type = exact ? GgufType.F32 : blocks ? form.type : GgufType.F16;
        return new GgufTensor(source.name(), source.shape(), type, source);
    }

    private static String list(List<String> all) {
        List<String> problems = all.stream().distinct().toList();
        List<String> shown = problems.subList(0, Math.min(SHOWN, problems.size()));
        String more =
                problems.size() > SHOWN ? "\n  and %d more".formatted(problems.size() - SHOWN) : "";
        return "\n  " + String.join("\n  ", shown) + more;
    }

    /** Returns the size of the file. */
    public long bytes() {
        return GgufWriter.bytes(metadata, tensors);
    }

    /**
     * Writes and flushes a new file.
     *
     * @throws StoredFileException if it exists or cannot be written, or a value does not fit the
     *     type; what was written is left for the caller to remove
     * @throws dev.penstock.runtime.safetensors.OutOfRangeException if a value does not fit F16
     */
    public void write(Path file) {
        GgufWriter.write(file, metadata, tensors);
    }
}
