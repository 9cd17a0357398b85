package dev.penstock.runtime.tokenizer;

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
        List<String> pairs =
                merges.stream()
                        .map(merge -> tokens.get(merge[0]) + " " + tokens.get(merge[1]))
                        .toList();
        ObjectNode whole = ByteLevelJson.of(tokens, List.of(tokens.size() - 1), pairs);
        StringBuilder lines = new StringBuilder("#version: 0.2\n");
        pairs.forEach(pair -> lines.append(pair).append('\n'));
        Map<String, String> texts = new LinkedHashMap<>();
        texts.put(BytePairTokenizer.VOCABULARY, whole.path("model").path("vocab").toString());
        texts.put(CONFIG, config().toString());
        texts.put(BytePairTokenizer.MERGES, lines.toString());
        texts.put(TokenizerJson.FILE, whole.toString());
        return texts;
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
