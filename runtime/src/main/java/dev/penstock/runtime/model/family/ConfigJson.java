package dev.penstock.runtime.model.family;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * A {@code config.json} that is read to the last key: each is used, known to be without effect on
 * what a model computes, or refused by name. Problems are collected, so that all are told at once.
 */
public final class ConfigJson {
    /** Far more than any model has. */
    private static final int MOST_LAYERS = 10_000;

    /** Keys that any model may have and that change nothing of what Penstock computes. */
    private static final Set<String> WITHOUT_EFFECT =
            Set.of(
                    "_name_or_path",
                    "_commit_hash",
                    "architectures",
                    "attention_dropout",
                    "attn_implementation",
                    "_attn_implementation",
                    "_attn_implementation_autoset",
                    "auto_map",
                    "bad_words_ids",
                    "begin_suppress_tokens",
                    "bos_token_id",
                    "chunk_size_feed_forward",
                    "decoder_start_token_id",
                    "do_sample",
                    "dtype",
                    "eos_token_id",
                    "finetuning_task",
                    "gradient_checkpointing",
                    "id2label",
                    "initializer_range",
                    "label2id",
                    "language",
                    "license",
                    "max_length",
                    "min_length",
                    "model_type",
                    "num_beams",
                    "num_labels",
                    "num_return_sequences",
                    "output_attentions",
                    "output_hidden_states",
                    "output_past",
                    "output_scores",
                    "pad_token_id",
                    "prefix",
                    "problem_type",
                    "repetition_penalty",
                    "return_dict",
                    "return_dict_in_generate",
                    "sep_token_id",
                    "suppress_tokens",
                    "task_specific_params",
                    "temperature",
                    "tf_legacy_loss",
                    "tokenizer_class",
                    "top_k",
                    "top_p",
                    "torch_dtype",
                    "torchscript",
                    "transformers_version",
                    "unk_token_id",
                    "use_bfloat16",
                    "use_cache");

    private final String path;
    private final JsonNode root;
    private final List<String> problems;
    private final Set<String> read = new TreeSet<>();

    private ConfigJson(String path, JsonNode root, List<String> problems) {
        this.path = path;
        this.root = root;
        this.problems = problems;
    }

    /**
     * @param problems receives what is wrong
     */
    public ConfigJson(JsonNode root, List<String> problems) {
        this("", root, problems);
    }

    /** Returns the name of the family that the model belongs to. */
    public Optional<String> modelType() {
        return Optional.ofNullable(root.path("model_type").textValue());
    }

    /** Returns whether a key has a value that is not null. */
    public boolean has(String key) {
        return root.hasNonNull(key);
    }

    /** Returns whether a key says null, which is not the same as being left out. */
    public boolean isNull(String key) {
        return root.path(key).isNull();
    }

    /** Returns a whole number from 1; it must be there. */
    public int size(String key) {
        return size(key, node(key));
    }

    /** Returns the number of layers: each has its tensors, which are listed. */
    public int layers(String key) {
        int layers = size(key);
        if (layers > MOST_LAYERS) {
            refuse(key, "at most " + MOST_LAYERS + " layers", node(key));
            return 1;
        }
        return layers;
    }

    /** Returns a whole number from 1, or the given one where there is none. */
    public int sizeOr(String key, int otherwise) {
        JsonNode node = node(key);
        return isUnsaid(node) ? otherwise : size(key, node);
    }

    /** Returns a whole number from 0, or the given one where there is none. */
    public int countOr(String key, int otherwise) {
        JsonNode node = node(key);
        if (isUnsaid(node)) {
            return otherwise;
        }
        if (!node.isInt() || node.intValue() < 0) {
            refuse(key, "a whole number from 0", node);
            return otherwise;
        }
        return node.intValue();
    }

    private int size(String key, JsonNode node) {
        if (!node.isInt() || node.intValue() < 1) {
            refuse(key, "a whole number from 1", node);
            return 1;
        }
        return node.intValue();
    }

    /** Returns a number above 0, or the given one where there is none. */
    public double positiveOr(String key, double otherwise) {
        JsonNode node = node(key);
        if (isUnsaid(node)) {
            return otherwise;
        }
        return positive(key, node);
    }

    /** Returns the epsilon of a norm, or the given one where there is none. */
    public double epsilonOr(String key, double otherwise) {
        double value = positiveOr(key, otherwise);
        if (value > 1) {
            refuse(key, "a number above 0 and up to 1", node(key));
            return otherwise;
        }
        return value;
    }

    /** Returns a number above 0; it must be there. */
    public double positive(String key) {
        return positive(key, node(key));
    }

    private double positive(String key, JsonNode node) {
        double value = node.isNumber() ? node.doubleValue() : 0;
        if (!(value > 0) || Double.isInfinite(value)) {
            refuse(key, "a number above 0", node);
            return 1;
        }
        return value;
    }

    /** Returns true or false, or the given one where nothing is said. */
    public boolean flagOr(String key, boolean otherwise) {
        JsonNode node = node(key);
        if (isUnsaid(node)) {
            return otherwise;
        }
        if (!node.isBoolean()) {
            refuse(key, "true or false", node);
        }
        return node.asBoolean();
    }

    /** Returns one of several words, or the given one where nothing is said. */
    public String wordOr(String key, String otherwise, List<String> words) {
        JsonNode node = node(key);
        if (isUnsaid(node)) {
            return otherwise;
        }
        if (!node.isTextual() || !words.contains(node.textValue())) {
            refuse(key, String.join(" or ", words), node);
            return otherwise;
        }
        return node.textValue();
    }

    /** Returns a list of words; empty where nothing is said. */
    public List<String> words(String key, List<String> known) {
        List<String> found = new ArrayList<>();
        JsonNode node = node(key);
        if (isUnsaid(node)) {
            return found;
        }
        boolean sound = node.isArray();
        for (JsonNode entry : node) {
            sound &= entry.isTextual() && known.contains(entry.textValue());
            found.add(entry.asText());
        }
        if (!sound) {
            refuse(key, "a list of " + String.join(" and ", known), node);
            return List.of();
        }
        return found;
    }

    /** Returns an object inside this one, if there is one. */
    public Optional<ConfigJson> object(String key) {
        JsonNode node = node(key);
        if (isUnsaid(node)) {
            return Optional.empty();
        }
        if (!node.isObject()) {
            refuse(key, "an object", node);
            return Optional.empty();
        }
        return Optional.of(new ConfigJson(path + key + ".", node, problems));
    }

    /** Refuses any other value than this, the only one that Penstock computes. */
    public void expect(String key, boolean only) {
        JsonNode node = node(key);
        if (!isUnsaid(node) && !(node.isBoolean() && node.booleanValue() == only)) {
            refuse(key, String.valueOf(only), node);
        }
    }

    /** Refuses any other value than this, the only one that Penstock computes. */
    public void expect(String key, double only) {
        JsonNode node = node(key);
        if (!isUnsaid(node) && !(node.isNumber() && node.doubleValue() == only)) {
            refuse(key, String.valueOf(only), node);
        }
    }

    /** Refuses any other value than these, the only ones that engines compute. */
    public void expect(String key, String... only) {
        if (has(key) && !List.of(only).contains(root.path(key).asText(""))) {
            refuse(key, String.join(" or ", only) + ", which is what engines compute");
        }
    }

    /** Names keys of a family that change nothing of what Penstock computes. */
    public void withoutEffect(String... keys) {
        read.addAll(List.of(keys));
    }

    /** Refuses all keys that nobody has asked for. */
    public void refuseOthers() {
        for (Map.Entry<String, JsonNode> field : root.properties()) {
            boolean known =
                    read.contains(field.getKey())
                            || (path.isEmpty() && WITHOUT_EFFECT.contains(field.getKey()));
            if (!known && !field.getValue().isNull()) {
                refuse(
                        field.getKey(),
                        "no such key, as Penstock does not know it",
                        field.getValue());
            }
        }
    }

    /** Adds a problem with a key. */
    public void refuse(String key, String expected) {
        refuse(key, expected, root.path(key));
    }

    /** Adds a problem with what a key stands for. */
    public void refuse(String key, String expected, String got) {
        problems.add("%s%s: expected %s, got %s".formatted(path, key, expected, got));
    }

    private void refuse(String key, String expected, JsonNode found) {
        String shown = found.isMissingNode() ? "nothing" : found.toString();
        String brief = shown.length() > 80 ? shown.substring(0, 77) + "..." : shown;
        refuse(key, expected, brief);
    }

    /** Returns what a key says, as it is; missing where nothing is said. */
    public JsonNode value(String key) {
        return root.path(key);
    }

    private JsonNode node(String key) {
        read.add(key);
        JsonNode node = root.path(key);
        return node.isNull() ? MissingNode.getInstance() : node;
    }

    private static boolean isUnsaid(JsonNode node) {
        return node.isMissingNode();
    }
}
