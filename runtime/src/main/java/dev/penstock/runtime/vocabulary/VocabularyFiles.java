package dev.penstock.runtime.vocabulary;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.tokenizer.ByteLevelJson;
import dev.penstock.runtime.vocabulary.Vocabulary.Kind;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

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
        List<Integer> specials =
                IntStream.range(0, vocabulary.tokens().size())
                        .filter(token -> vocabulary.kinds().get(token) == Kind.CONTROL)
                        .boxed()
                        .toList();
        return ByteLevelJson.of(vocabulary.tokens(), specials, vocabulary.merges());
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
