package dev.penstock.runtime.checkpoint;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.checkpoint.WeightsExport.Form;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Writes a model as transformers reads it: safetensors (which it looks for under the name {@code
 * model.safetensors}) and {@code config.json} next to it.
 */
public final class HuggingFaceExport {
    private static final ObjectMapper JSON = new ObjectMapper();

    private HuggingFaceExport() {}

    /**
     * Exports the parameters of a model in one file, in the types in which they are stored; see the
     * other.
     */
    public static void write(Path weights, ModelConfig model, ModelTensors source) {
        write(weights, model, source, Form.AS_STORED, Map.of());
    }

    /**
     * Exports the parameters of a model; optimizer state is left out. Names and layouts are those
     * of its family; a GPT-2 has the names of the published gpt2 files ({@code wte.weight}, ...); a
     * model with a head of its own gets the {@code transformer.} prefix, since transformers refuses
     * a {@code lm_head.weight} next to bare names.
     *
     * @param weights as {@link WeightsExport#write}
     * @param texts more files of the folder, such as the tokenizer's, by name
     * @return the files with weights
     * @throws StoredFileException if the tensors are not those of the model or cannot be written
     */
    public static List<Path> write(
            Path weights,
            ModelConfig model,
            ModelTensors source,
            Form form,
            Map<String, String> texts) {
        List<TensorSource> tensors = published(model, source);
        Map<String, String> beside = new LinkedHashMap<>(texts);
        beside.put(ModelConfig.FILE, config(model, tensors, form, texts));
        return WeightsExport.write(weights, tensors, beside, form, source::requireWhole);
    }

    /**
     * Returns the parameters of a model with the names that they get outside.
     *
     * @throws StoredFileException if the tensors are not those of the model
     */
    public static List<TensorSource> published(ModelConfig model, ModelTensors source) {
        source.requireParameters(model);
        List<TensorSource> tensors = new ArrayList<>();
        for (StoredPart part : model.family().parts(model.shape())) {
            tensors.add(PublishedPart.of(part, source));
        }
        return tensors;
    }

    /** Says the type of most elements, which is what transformers loads them as. */
    private static String config(
            ModelConfig model, List<TensorSource> tensors, Form form, Map<String, String> texts) {
        StoredType type = form.type().orElse(tensors.getFirst().type());
        String torchName =
                switch (type) {
                    case F64 -> "float64";
                    case F32 -> "float32";
                    case F16 -> "float16";
                    case BF16 -> "bfloat16";
                    case I64, I32, I16, I8, U64, U32, U16, U8, BOOL ->
                            type.name().toLowerCase(Locale.ROOT);
                };
        try {
            ObjectNode config = (ObjectNode) JSON.readTree(model.toJson());
            config.put(config.has("dtype") ? "dtype" : "torch_dtype", torchName);
            config.setAll(specialTokens(texts));
            return config.toPrettyString() + "\n";
        } catch (JsonProcessingException e) {
            throw new AssertionError("a model's own JSON", e);
        }
    }

    /**
     * The tokens that begin and end a text, or that there are none, by the tokenizer beside. Where
     * it is not said, readers take the numbers that the family's first model had.
     */
    private static ObjectNode specialTokens(Map<String, String> texts) {
        ObjectNode special = JSON.createObjectNode();
        try {
            JsonNode tokenizer = JSON.readTree(texts.getOrDefault("tokenizer.json", ""));
            JsonNode names = JSON.readTree(texts.getOrDefault("tokenizer_config.json", ""));
            if (tokenizer.isObject() && names.isObject()) {
                for (String kind : List.of("bos", "eos")) {
                    JsonNode token = names.path(kind + "_token");
                    JsonNode text = token.isObject() ? token.path("content") : token;
                    special.set(
                            kind + "_token_id",
                            text.isTextual()
                                    ? number(tokenizer, text.textValue())
                                    : JSON.nullNode());
                }
            }
        } catch (JsonProcessingException e) {
            special.removeAll(); // copied as it was; whoever loads it says what is wrong
        }
        return special;
    }

    private static JsonNode number(JsonNode tokenizer, String text) {
        for (JsonNode added : tokenizer.path("added_tokens")) {
            if (added.path("content").asText().equals(text)) {
                return added.path("id");
            }
        }
        JsonNode number = tokenizer.path("model").path("vocab").path(text);
        return number.isInt() ? number : JSON.nullNode();
    }
}
