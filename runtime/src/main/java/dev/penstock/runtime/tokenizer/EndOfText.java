package dev.penstock.runtime.tokenizer;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalInt;

/**
 * Finds which token of a tokenizer ends a text: what the files beside say, or its usual names; and
 * which one begins a text, if they say so.
 */
final class EndOfText {
    private static final String CONFIG = "tokenizer_config.json";
    private static final String SPECIAL = "special_tokens_map.json";
    private static final String MEMBER = "eos_token";
    private static final String BEGINNING = "bos_token";
    private static final List<String> USUAL =
            List.of("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[SEP]", "<|eot_id|>");

    private EndOfText() {}

    /**
     * Returns its number; empty if a file beside says that there is none.
     *
     * @param file the tokenizer's file
     * @throws TokenizerFileException if nothing is said, or a token that does not exist is named
     */
    static OptionalInt in(Path file, TokenTable vocabulary) {
        JsonNode said = JsonFiles.readIfThere(file.resolveSibling(CONFIG)).path(MEMBER);
        return said.isNull() ? OptionalInt.empty() : OptionalInt.of(of(file, vocabulary));
    }

    /**
     * Returns its number.
     *
     * @param file the tokenizer's file
     * @throws TokenizerFileException if there is none, or the one that is named does not exist
     */
    static int of(Path file, TokenTable vocabulary) {
        for (String name : List.of(CONFIG, SPECIAL)) {
            Path beside = file.resolveSibling(name);
            String token = tokenOf(JsonFiles.readIfThere(beside).path(MEMBER));
            if (!token.isEmpty()) {
                Integer id = vocabulary.id(token);
                if (id == null) {
                    throw new TokenizerFileException(
                            beside,
                            MEMBER + ", a token of " + file.getFileName(),
                            "'" + token + "', which it does not have",
                            "the files belong to different tokenizers");
                }
                return id;
            }
        }
        for (String token : USUAL) {
            Integer id = vocabulary.id(token);
            if (id != null) {
                return id;
            }
        }
        throw new TokenizerFileException(
                file,
                "a token that ends a text, such as " + USUAL.getFirst(),
                "none of the usual names",
                "name it beside, in %s: {\"%s\": \"..\"}".formatted(CONFIG, MEMBER));
    }

    private static String tokenOf(JsonNode member) {
        return member.isObject()
                ? member.path("content").asText()
                : member.isNull() ? "" : member.asText();
    }

    /** Returns the token that begins a text; empty if no file beside names one that exists. */
    static OptionalInt beginning(Path file, TokenTable vocabulary) {
        for (String name : List.of(CONFIG, SPECIAL)) {
            JsonNode bos = JsonFiles.readIfThere(file.resolveSibling(name)).path(BEGINNING);
            Integer id = vocabulary.id(tokenOf(bos));
            if (id != null) {
                return OptionalInt.of(id);
            }
        }
        return OptionalInt.empty();
    }
}
