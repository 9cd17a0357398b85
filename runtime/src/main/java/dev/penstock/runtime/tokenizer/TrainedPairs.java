package dev.penstock.runtime.tokenizer;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A byte-level byte-pair encoding that was learned, as files. The token that ends a text comes
 * last, as GPT-2's does.
 */
public final class TrainedPairs {
    /** The token that ends a text. */
    public static final String END = "<|endoftext|>";

    private static final String CONFIG = "tokenizer_config.json";

    private final List<String> tokens;
    private final List<int[]> merges;

    TrainedPairs(List<String> tokens, List<int[]> merges) {
        this.tokens = new ArrayList<>(tokens);
        this.tokens.add(END);
        this.merges = List.copyOf(merges);
    }

    /** Returns how many tokens there are. */
    public int vocabulary() {
        return tokens.size();
    }

    /** Returns the names of the files of {@link #texts}. */
    public static List<String> files() {
        return List.of(
                BytePairTokenizer.VOCABULARY, BytePairTokenizer.MERGES, TokenizerJson.FILE, CONFIG);
    }

    /** Returns the names of those without which a folder has no tokenizer. */
    public static List<String> decisiveFiles() {
        return List.of(TokenizerJson.FILE, BytePairTokenizer.MERGES);
    }

    /**
     * Returns it as {@code vocab.json} and {@code merges.txt}, and once more as a {@code
     * tokenizer.json} with its {@code tokenizer_config.json}, which Hugging Face's library loads
     * and gives the same tokens. The {@link #decisiveFiles} come last.
     */
    public Map<String, String> texts() {
        ObjectNode vocabulary = JsonFiles.MAPPER.createObjectNode();
        for (int id = 0; id < tokens.size(); id++) {
            vocabulary.put(tokens.get(id), id);
        }
        StringBuilder lines = new StringBuilder("#version: 0.2\n");
        ArrayNode pairs = JsonFiles.MAPPER.createArrayNode();
        for (int[] merge : merges) {
            String line = tokens.get(merge[0]) + " " + tokens.get(merge[1]);
            lines.append(line).append('\n');
            pairs.add(line);
        }
        Map<String, String> texts = new LinkedHashMap<>();
        texts.put(BytePairTokenizer.VOCABULARY, vocabulary.toString());
        texts.put(CONFIG, config().toString());
        texts.put(BytePairTokenizer.MERGES, lines.toString());
        texts.put(TokenizerJson.FILE, whole(vocabulary, pairs).toString());
        return texts;
    }

    private ObjectNode whole(ObjectNode vocabulary, ArrayNode pairs) {
        ObjectNode whole = JsonFiles.MAPPER.createObjectNode();
        whole.put("version", "1.0");
        whole.putNull("truncation");
        whole.putNull("padding");
        whole.putArray("added_tokens")
                .addObject()
                .put("id", tokens.size() - 1)
                .put("content", END)
                .put("single_word", false)
                .put("lstrip", false)
                .put("rstrip", false)
                .put("normalized", false)
                .put("special", true);
        whole.putNull("normalizer");
        whole.set("pre_tokenizer", byteLevel());
        whole.set("post_processor", byteLevel());
        whole.set("decoder", byteLevel());
        ObjectNode model = whole.putObject("model");
        model.put("type", "BPE");
        model.putNull("dropout");
        model.putNull("unk_token");
        model.putNull("continuing_subword_prefix");
        model.putNull("end_of_word_suffix");
        model.put("fuse_unk", false);
        model.put("byte_fallback", false);
        model.set("vocab", vocabulary);
        model.set("merges", pairs);
        return whole;
    }

    private static ObjectNode byteLevel() {
        return JsonFiles.MAPPER
                .createObjectNode()
                .put("type", "ByteLevel")
                .put("add_prefix_space", false)
                .put("trim_offsets", true)
                .put("use_regex", true);
    }

    private static ObjectNode config() {
        return JsonFiles.MAPPER
                .createObjectNode()
                .put("tokenizer_class", "GPT2Tokenizer")
                .put("add_prefix_space", false)
                .put("bos_token", END)
                .put("eos_token", END)
                .put("unk_token", END);
    }
}
