package dev.penstock.runtime.vocabulary;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.safetensors.JsonMistake;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.tokenizer.TokenTable;
import dev.penstock.runtime.vocabulary.Vocabulary.Kind;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Reads a byte-pair tokenizer, of bytes or as SentencePiece has it, from a Hugging Face folder:
 * {@code tokenizer.json}, or the older {@code vocab.json} with {@code merges.txt}.
 */
final class VocabularyFolder {
    private static final String JSON_FILE = "tokenizer.json";
    private static final String VOCABULARY = "vocab.json";
    private static final String MERGES = "merges.txt";
    private static final int MOST_TOKENS = 1 << 20;

    /** The largest tokenizers of today have 40 MB; in memory they take ten times as much. */
    private static final long MOST_BYTES = 128 << 20;

    /** Problems that are told one by one; a merge or a token may each have one. */
    private static final int SHOWN = 10;

    private static final ObjectMapper JSON =
            JsonMapper.builder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION).build();

    /** How text is cut: the regular expression in the file, and llama.cpp's name for it. */
    private static final Map<String, String> SPLITTERS =
            Map.of(
                    splitter("{1,3}"), "llama-bpe",
                    splitter(""), "qwen2");

    private final Path folder;
    private final List<String> problems = new ArrayList<>();

    private VocabularyFolder(Path folder) {
        this.folder = folder;
    }

    private static String splitter(String digits) {
        return "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                + digits
                + "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    }

    /**
     * Reads the tokenizer.
     *
     * @throws StoredFileException if there is none, it cannot be read, or is of another kind, which
     *     is said
     */
    static Vocabulary read(Path folder) {
        VocabularyFolder reader = new VocabularyFolder(folder);
        return Files.exists(folder.resolve(JSON_FILE)) ? reader.fromJson() : reader.fromTwoFiles();
    }

    private Vocabulary fromTwoFiles() {
        JsonNode vocabulary = json(VOCABULARY);
        List<String> merges =
                text(MERGES).lines().filter(line -> !line.isEmpty()).filter(this::isMerge).toList();
        return vocabulary(vocabulary, JSON.createArrayNode(), merges, Vocabulary.GPT2, false);
    }

    private boolean isMerge(String line) {
        return !line.startsWith("#version");
    }

    private Vocabulary fromJson() {
        JsonNode root = json(JSON_FILE);
        JsonNode model = root.path("model");
        if (!model.path("type").asText().equals("BPE")) {
            problems.add("expected a model of type BPE, got " + model.path("type"));
        }
        if (model.path("byte_fallback").asBoolean()) {
            return pieces(root);
        }
        if (!root.path("normalizer").isNull() && !root.path("normalizer").isMissingNode()) {
            String type = root.path("normalizer").path("type").asText();
            if (!type.equals("NFC")) {
                problems.add("expected no normalizer, got " + type);
            }
        }
        String splitter = splitterOf(root.path("pre_tokenizer")).orElse("");
        List<String> merges = new ArrayList<>();
        for (JsonNode merge : model.path("merges")) {
            merges.add(
                    merge.isArray() && merge.size() == 2
                            ? merge.get(0).asText() + " " + merge.get(1).asText()
                            : merge.asText());
        }
        return vocabulary(
                model.path("vocab"),
                root.path("added_tokens"),
                merges,
                splitter,
                beginsWithSpecial(root.path("post_processor")));
    }

    private Vocabulary pieces(JsonNode root) {
        JsonNode model = root.path("model");
        SentencePieces pieces = new SentencePieces(root, problems);
        Vocabulary read =
                vocabulary(
                        model.path("vocab"), root.path("added_tokens"), pieces.merges(), "", false);
        Vocabulary scored =
                pieces.scored(
                        read, root.path("post_processor"), model.path("unk_token").asText(""));
        requireNoProblems();
        return scored;
    }

    private Optional<String> splitterOf(JsonNode node) {
        List<JsonNode> steps = new ArrayList<>();
        if (node.path("type").asText().equals("Sequence")) {
            node.path("pretokenizers").forEach(steps::add);
        }
        if (steps.isEmpty()) {
            steps.add(node);
        }
        boolean bytes =
                steps.getLast().path("type").asText().equals("ByteLevel")
                        && !steps.getLast().path("add_prefix_space").asBoolean();
        if (bytes && steps.size() == 1 && steps.getFirst().path("use_regex").asBoolean(true)) {
            return Optional.of(Vocabulary.GPT2);
        }
        String regex = steps.getFirst().path("pattern").path("Regex").asText();
        if (bytes && steps.size() == 2 && SPLITTERS.containsKey(regex)) {
            return Optional.of(SPLITTERS.get(regex));
        }
        problems.add(
                "expected a byte-level pre_tokenizer of GPT-2, Llama 3 or Qwen 2, got another");
        return Optional.empty();
    }

    private static boolean beginsWithSpecial(JsonNode processor) {
        if (processor.path("type").asText().equals("Sequence")) {
            for (JsonNode step : processor.path("processors")) {
                if (beginsWithSpecial(step)) {
                    return true;
                }
            }
            return false;
        }
        return processor.path("single").path(0).has("SpecialToken");
    }

    private Vocabulary vocabulary(
            JsonNode vocabulary,
            JsonNode added,
            List<String> merges,
            String splitter,
            boolean addsBeginning) {
        TokenTable table = new TokenTable(folder);
        Map<Integer, Kind> kinds = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> token : vocabulary.properties()) {
            table.add(token.getKey(), number(token.getValue()));
        }
        for (JsonNode token : added) {
            long number = number(token.path("id"));
            table.add(token.path("content").asText(), number);
            kinds.put(
                    (int) number,
                    token.path("special").asBoolean() ? Kind.CONTROL : Kind.USER_DEFINED);
        }
        table.requireFewUnused();
        if (table.size() < 1 || table.size() > MOST_TOKENS) {
            problems.add(
                    "expected a vocabulary of 1 to %d numbered tokens, got %d"
                            .formatted(MOST_TOKENS, table.size()));
        }
        requireNoProblems();
        Map<String, Integer> specials = specials(table);
        specials.values().forEach(token -> kinds.put(token, Kind.CONTROL));
        List<String> tokens = new ArrayList<>();
        List<Kind> theirs = new ArrayList<>();
        for (int number = 0; number < table.size(); number++) {
            String text = table.token(number);
            tokens.add(text == null ? unused(number, table) : text);
            theirs.add(text == null ? Kind.UNUSED : kinds.getOrDefault(number, Kind.NORMAL));
        }
        return new Vocabulary(splitter, tokens, theirs, merges, specials, addsBeginning);
    }

    private void requireNoProblems() {
        if (!problems.isEmpty()) {
            List<String> shown = problems.subList(0, Math.min(SHOWN, problems.size()));
            int more = problems.size() - shown.size();
            throw new StoredFileException(
                    folder,
                    "its tokenizer is none that Penstock can write elsewhere:\n  "
                            + String.join("\n  ", shown)
                            + (more > 0 ? "\n  and %,d more".formatted(more) : ""));
        }
    }

    /** A number that is not written as one, or with a fraction, is none. */
    private static long number(JsonNode node) {
        return node.isIntegralNumber() && node.canConvertToLong() ? node.longValue() : -1;
    }

    private static String unused(int number, TokenTable table) {
        String name = "[PAD%d]".formatted(number);
        while (table.id(name) != null) {
            name = "[" + name + "]";
        }
        return name;
    }

    /** Tokens with a meaning, where one of the folder's files names them. */
    private Map<String, Integer> specials(TokenTable table) {
        Map<String, Integer> specials = new LinkedHashMap<>();
        for (String name : List.of("bos", "eos", "unk", "pad")) {
            for (String file : List.of("tokenizer_config.json", "special_tokens_map.json")) {
                JsonNode token = optional(file).path(name + "_token");
                String text = token.isObject() ? token.path("content").asText() : token.asText();
                Integer number = table.id(text);
                if (number != null) {
                    specials.putIfAbsent(name, number);
                }
            }
        }
        JsonNode config = optional("config.json");
        for (String name : List.of("bos", "eos", "pad")) {
            JsonNode id = config.path(name + "_token_id");
            JsonNode first = id.isArray() ? id.path(0) : id;
            if (first.isInt()
                    && first.intValue() >= 0
                    && first.intValue() < table.size()
                    && table.token(first.intValue()) != null) {
                specials.putIfAbsent(name, first.intValue());
            }
        }
        Integer usual = table.id("<|endoftext|>");
        if (specials.isEmpty() && usual != null) {
            specials.put("bos", usual);
            specials.put("eos", usual);
        }
        return specials;
    }

    private JsonNode optional(String file) {
        return Files.exists(folder.resolve(file)) ? json(file) : JSON.createObjectNode();
    }

    private JsonNode json(String file) {
        try {
            return JSON.readTree(text(file));
        } catch (JsonProcessingException e) {
            throw new StoredFileException(
                    folder.resolve(file), "not JSON: " + JsonMistake.words(e), e);
        }
    }

    private String text(String file) {
        try {
            long bytes = Files.size(folder.resolve(file));
            if (bytes > MOST_BYTES) {
                throw new StoredFileException(
                        folder.resolve(file),
                        "expected a tokenizer's file of at most %d MiB, got %,d bytes"
                                .formatted(MOST_BYTES >> 20, bytes));
            }
            return Files.readString(folder.resolve(file), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw StoredFileException.of(folder.resolve(file), "read the tokenizer", e);
        }
    }
}
