package dev.penstock.runtime.checkpoint;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The shape of a GPT-2, as given in {@code config.json} of Hugging Face's transformers.
 *
 * @param vocabulary rows of the token embedding ({@code vocab_size})
 * @param context rows of the position embedding ({@code n_positions})
 * @param width {@code n_embd}
 * @param layers {@code n_layer}
 * @param heads {@code n_head}
 * @param tied whether the head uses the token embedding ({@code tie_word_embeddings})
 */
public record Gpt2Config(
        int vocabulary, int context, int width, int layers, int heads, boolean tied) {
    /** The name of the file next to a model. */
    public static final String FILE = "config.json";

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final double EPSILON = 1e-5;
    private static final String ACTIVATION = "gelu_new";

    /**
     * Reads a {@code config.json}.
     *
     * @throws StoredFileException if it is not one, or asks for something that differs from the
     *     GPT-2 that Penstock computes; lists all differences at once
     */
    public static Gpt2Config read(Path file) {
        try {
            return of(file, JSON.readTree(Files.readString(file, StandardCharsets.UTF_8)));
        } catch (JsonProcessingException e) {
            throw new StoredFileException(file, "not JSON: " + e.getOriginalMessage(), e);
        } catch (IOException e) {
            throw StoredFileException.of(file, "read the model's shape", e);
        }
    }

    private static Gpt2Config of(Path file, JsonNode root) {
        List<String> problems = new ArrayList<>();
        Gpt2Config config =
                new Gpt2Config(
                        size(root, "vocab_size", problems),
                        size(root, "n_positions", problems),
                        size(root, "n_embd", problems),
                        size(root, "n_layer", problems),
                        size(root, "n_head", problems),
                        root.path("tie_word_embeddings").asBoolean(true));
        expect(root, "model_type", "gpt2", problems);
        expect(root, "activation_function", ACTIVATION, problems);
        expect(root, "layer_norm_epsilon", Double.toString(EPSILON), problems);
        expect(root, "n_inner", Integer.toString(4 * config.width), problems);
        expect(root, "scale_attn_weights", "true", problems);
        expect(root, "scale_attn_by_inverse_layer_idx", "false", problems);
        if (!problems.isEmpty()) {
            throw new StoredFileException(
                    file, "not a GPT-2 that Penstock supports: " + String.join("; ", problems));
        }
        return config;
    }

    private static int size(JsonNode root, String key, List<String> problems) {
        JsonNode node = root.path(key);
        if (!node.isInt() || node.intValue() < 1) {
            problems.add("%s: expected a whole number from 1, got %s".formatted(key, shown(node)));
            return 1;
        }
        return node.intValue();
    }

    private static void expect(JsonNode root, String key, String value, List<String> problems) {
        JsonNode node = root.path(key);
        boolean unsaid = node.isMissingNode() || node.isNull();
        if (!unsaid && !node.asText().equals(value)) {
            problems.add("%s: expected %s, got %s".formatted(key, value, shown(node)));
        }
    }

    private static String shown(JsonNode node) {
        return node.isMissingNode() ? "nothing" : node.toString();
    }

    /** Returns the text of a {@code config.json}. */
    public String toJson() {
        ObjectNode root = JSON.createObjectNode();
        root.putArray("architectures").add("GPT2LMHeadModel");
        root.put("model_type", "gpt2");
        root.put("vocab_size", vocabulary);
        root.put("n_positions", context);
        root.put("n_ctx", context);
        root.put("n_embd", width);
        root.put("n_layer", layers);
        root.put("n_head", heads);
        root.put("activation_function", ACTIVATION);
        root.put("layer_norm_epsilon", EPSILON);
        root.put("tie_word_embeddings", tied);
        root.put("torch_dtype", "float32");
        return root.toPrettyString() + "\n";
    }

    /** Returns every parameter's name and shape, in the order of the model. */
    public Map<String, List<Integer>> parameters() {
        Map<String, List<Integer>> shapes = new LinkedHashMap<>();
        shapes.put("wte.weight", List.of(vocabulary, width));
        shapes.put("wpe.weight", List.of(context, width));
        for (int layer = 0; layer < layers; layer++) {
            String block = "h." + layer + ".";
            norm(shapes, block + "ln_1");
            linear(shapes, block + "attn.c_attn", width, 3 * width);
            linear(shapes, block + "attn.c_proj", width, width);
            norm(shapes, block + "ln_2");
            linear(shapes, block + "mlp.c_fc", width, 4 * width);
            linear(shapes, block + "mlp.c_proj", 4 * width, width);
        }
        norm(shapes, "ln_f");
        if (!tied) {
            shapes.put("lm_head.weight", List.of(vocabulary, width));
        }
        return shapes;
    }

    private void norm(Map<String, List<Integer>> shapes, String name) {
        shapes.put(name + ".weight", List.of(width));
        shapes.put(name + ".bias", List.of(width));
    }

    private static void linear(
            Map<String, List<Integer>> shapes, String name, int inputs, int outputs) {
        shapes.put(name + ".weight", List.of(inputs, outputs));
        shapes.put(name + ".bias", List.of(outputs));
    }
}
