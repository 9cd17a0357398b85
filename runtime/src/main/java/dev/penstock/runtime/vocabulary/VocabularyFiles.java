package dev.penstock.runtime.vocabulary;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.vocabulary.Vocabulary.Kind;
import java.util.Map;

/** Writes {@code tokenizer.json} and {@code tokenizer_config.json}. */
final class VocabularyFiles {
    private static final ObjectMapper JSON = new ObjectMapper();

    private VocabularyFiles() {}

    static Map<String, String> of(Vocabulary vocabulary) {
        if (!vocabulary.splitter().equals(Vocabulary.GPT2)) {
            throw new IllegalStateException("text is cut as " + vocabulary.splitter());
        }
        return Map.of(
                "tokenizer.json",
                tokenizer(vocabulary).toPrettyString() + "\n",
                "tokenizer_config.json",
                config(vocabulary).toPrettyString() + "\n");
    }

    private static ObjectNode tokenizer(Vocabulary vocabulary) {
        ObjectNode root = JSON.createObjectNode();
        root.put("version", "1.0");
        root.putNull("truncation");
        root.putNull("padding");
        ArrayNode added = root.putArray("added_tokens");
        ObjectNode model = JSON.createObjectNode();
        model.put("type", "BPE");
        model.putNull("dropout");
        model.putNull("unk_token");
        model.put("continuing_subword_prefix", "");
        model.put("end_of_word_suffix", "");
        model.put("fuse_unk", false);
        model.put("byte_fallback", false);
        ObjectNode numbers = model.putObject("vocab");
        for (int token = 0; token < vocabulary.tokens().size(); token++) {
            String text = vocabulary.tokens().get(token);
            numbers.put(text, token);
            if (vocabulary.kinds().get(token) == Kind.CONTROL) {
                added(added.addObject(), token, text);
            }
        }
        ArrayNode merges = model.putArray("merges");
        vocabulary.merges().forEach(merges::add);
        root.putNull("normalizer");
        bytes(root.putObject("pre_tokenizer"), true);
        bytes(root.putObject("post_processor"), false);
        bytes(root.putObject("decoder"), true);
        root.set("model", model);
        return root;
    }

    private static void added(ObjectNode node, int token, String text) {
        node.put("id", token);
        node.put("content", text);
        node.put("single_word", false);
        node.put("lstrip", false);
        node.put("rstrip", false);
        node.put("normalized", false);
        node.put("special", true);
    }

    private static void bytes(ObjectNode node, boolean trimsOffsets) {
        node.put("type", "ByteLevel");
        node.put("add_prefix_space", false);
        node.put("trim_offsets", trimsOffsets);
        node.put("use_regex", true);
    }

    private static ObjectNode config(Vocabulary vocabulary) {
        ObjectNode root = JSON.createObjectNode();
        root.put("tokenizer_class", "PreTrainedTokenizerFast");
        root.put("clean_up_tokenization_spaces", false);
        root.putNull("eos_token"); // said, else readers take it for forgotten
        vocabulary
                .specials()
                .forEach(
                        (name, token) -> root.put(name + "_token", vocabulary.tokens().get(token)));
        return root;
    }
}
