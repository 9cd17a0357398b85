package dev.penstock.runtime.tokenizer;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What of a {@code tokenizer.json} says how many tokens there are and for which text each stands;
 * how text becomes tokens is the library's business.
 */
final class TokenizerJson {
    static final String FILE = "tokenizer.json";

    private static final Pattern BYTE = Pattern.compile("<0x([0-9A-Fa-f]{2})>");

    /** How SentencePiece writes a space. */
    private static final char SPACE = '\u2581';

    private final Path file;
    private final TokenTable vocabulary;
    private final Set<String> added = new HashSet<>();
    private JsonNode decoder = JsonFiles.MAPPER.nullNode();
    private JsonNode words = JsonFiles.MAPPER.nullNode();
    private boolean hasModel;

    private TokenizerJson(Path file) {
        this.file = file;
        this.vocabulary = new TokenTable(file);
    }

    /**
     * Reads a file.
     *
     * @throws TokenizerFileException if it is none, or damaged
     */
    static TokenizerJson read(Path file) {
        var read = new TokenizerJson(file);
        JsonFiles.read(file, read::take);
        if (!read.hasModel || read.vocabulary.size() == 0) {
            throw new TokenizerFileException(
                    file,
                    "a tokenizer.json with model.vocab",
                    "none",
                    "the file is of another kind");
        }
        read.vocabulary.requireFewUnused();
        return read;
    }

    private void take(String name, JsonParser json) throws IOException {
        switch (name) {
            case "model" -> {
                if (json.currentToken() != JsonToken.START_OBJECT) {
                    throw JsonFiles.damaged(file, "a model that is none");
                }
                hasModel = true;
                JsonFiles.readObject(json, this::takeOfModel);
            }
            case "added_tokens" -> addedTokens(JsonFiles.MAPPER.readTree(json));
            case "decoder" -> decoder = JsonFiles.MAPPER.readTree(json);
            case "pre_tokenizer" -> words = JsonFiles.MAPPER.readTree(json);
            default -> json.skipChildren();
        }
    }

    private void takeOfModel(String name, JsonParser json) throws IOException {
        if (!name.equals("vocab")) {
            json.skipChildren();
        } else if (json.currentToken() == JsonToken.START_OBJECT) {
            JsonFiles.readObject(json, JsonFiles.numbered(file, vocabulary));
        } else if (json.currentToken() == JsonToken.START_ARRAY) {
            rows(json);
        } else {
            throw JsonFiles.damaged(file, "a vocab that is none");
        }
    }

    /** Unigram's: each token with its score, in the order of the numbers. */
    private void rows(JsonParser json) throws IOException {
        for (int id = 0; json.nextToken() != JsonToken.END_ARRAY; id++) {
            JsonNode row = JsonFiles.MAPPER.readTree(json);
            if (!row.path(0).isTextual()) {
                throw JsonFiles.damaged(file, "entry %d of vocab without a token".formatted(id));
            }
            vocabulary.addRow(row.path(0).textValue(), id);
        }
    }

    private void addedTokens(JsonNode list) {
        for (JsonNode token : list) {
            if (!token.path("content").isTextual() || !token.path("id").isIntegralNumber()) {
                throw JsonFiles.damaged(file, "an added token without content or id");
            }
            String content = token.path("content").textValue();
            vocabulary.add(content, token.path("id").longValue());
            added.add(content);
        }
    }

    TokenTable vocabulary() {
        return vocabulary;
    }

    /**
     * Returns whether text is cut into words before anything is merged, and not made one word with
     * signs for spaces.
     */
    boolean cutsWords() {
        return !words.isNull() && !mentions(words, "Metaspace");
    }

    /** Returns the bytes for which each token stands; an empty row for a number without token. */
    byte[][] bytes() {
        UnaryOperator<String> text =
                mentions(decoder, "WordPiece")
                        ? token -> token.startsWith("##") ? token.substring(2) : " " + token
                        : mentions(decoder, "Metaspace") || mentions(decoder, "Replace")
                                ? token -> token.replace(SPACE, ' ')
                                : token -> token;
        boolean symbols = mentions(decoder, "ByteLevel");
        boolean fallback = mentions(decoder, "ByteFallback");
        byte[][] bytes = new byte[vocabulary.size()][];
        for (int id = 0; id < bytes.length; id++) {
            String token = vocabulary.token(id);
            if (token == null) {
                bytes[id] = Tokenizer.unknown();
                continue;
            }
            Matcher one = BYTE.matcher(token);
            if (fallback && one.matches()) {
                bytes[id] = new byte[] {(byte) Integer.parseInt(one.group(1), 16)};
            } else if (symbols && !added.contains(token)) {
                bytes[id] = ByteSymbols.bytes(token);
            } else {
                String shown = added.contains(token) ? token : text.apply(token);
                bytes[id] = shown.getBytes(StandardCharsets.UTF_8);
            }
        }
        return bytes;
    }

    /** Whether this part, or one in a sequence of it, is of a type. */
    private static boolean mentions(JsonNode part, String type) {
        if (part.path("type").asText().equals(type)) {
            return true;
        }
        for (String list : new String[] {"decoders", "pretokenizers"}) {
            for (JsonNode inner : part.path(list)) {
                if (mentions(inner, type)) {
                    return true;
                }
            }
        }
        return false;
    }
}
