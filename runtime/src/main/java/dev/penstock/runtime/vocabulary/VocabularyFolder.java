package dev.penstock.runtime.vocabulary;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.safetensors.StoredFileException;
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
 * Reads a byte-level byte-pair tokenizer from a Hugging Face folder: {@code tokenizer.json}, or the
 * older {@code vocab.json} with {@code merges.txt}.
 */
final class VocabularyFolder {
    private static final String JSON_FILE = "tokenizer.json";
    private static final String VOCABULARY = "vocab.json";
    private static final String MERGES = "merges.txt";
    private static final int MOST_TOKENS = 1 << 20;
    private static final ObjectMapper JSON = new ObjectMapper();

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

    /** Returns whether a folder has a tokenizer's files. */
    static boolean hasTokenizer(Path folder) {
        return Files.exists(folder.resolve(JSON_FILE))
                || (Files.exists(folder.resolve(VOCABULARY))
                        && Files.exists(folder.resolve(MERGES)));
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
            problems.add("expected bytes as characters, got byte_fallback (SentencePiece)");
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
        Map<Integer, String> byNumber = new LinkedHashMap<>();
        Map<String, Integer> byText = new LinkedHashMap<>();
        Map<Integer, Kind> kinds = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> token : vocabulary.properties()) {
            byNumber.put(token.getValue().asInt(-1), token.getKey());
            byText.put(token.getKey(), token.getValue().asInt(-1));
        }
        for (JsonNode token : added) {
            int number = token.path("id").asInt(-1);
            byNumber.put(number, token.path("content").asText());
            byText.put(token.path("content").asText(), number);
            kinds.put(number, token.path("special").asBoolean() ? Kind.CONTROL : Kind.USER_DEFINED);
        }
        int size = byNumber.keySet().stream().mapToInt(Integer::intValue).max().orElse(-1) + 1;
        if (size < 1 || size > MOST_TOKENS || byNumber.containsKey(-1)) {
            problems.add("expected a vocabulary of numbered tokens, got none");
        }
        if (!problems.isEmpty()) {
            throw new StoredFileException(
                    folder,
                    "its tokenizer is none that Penstock can write elsewhere:\n  "
                            + String.join("\n  ", problems));
        }
        Map<String, Integer> specials = specials(byText);
        specials.values().forEach(token -> kinds.put(token, Kind.CONTROL));
        List<String> tokens = new ArrayList<>();
        List<Kind> theirs = new ArrayList<>();
        for (int number = 0; number < size; number++) {
            String text = byNumber.get(number);
            tokens.add(text == null ? "[PAD%d]".formatted(number) : text);
            theirs.add(text == null ? Kind.UNUSED : kinds.getOrDefault(number, Kind.NORMAL));
        }
        return new Vocabulary(splitter, tokens, theirs, merges, specials, addsBeginning);
    }

    /** Tokens with a meaning, where one of the folder's files names them. */
    private Map<String, Integer> specials(Map<String, Integer> byText) {
        Map<String, Integer> specials = new LinkedHashMap<>();
        for (String name : List.of("bos", "eos", "unk", "pad")) {
            for (String file : List.of("tokenizer_config.json", "special_tokens_map.json")) {
                JsonNode token = optional(file).path(name + "_token");
                String text = token.isObject() ? token.path("content").asText() : token.asText();
                if (byText.containsKey(text)) {
                    specials.putIfAbsent(name, byText.get(text));
                }
            }
        }
        JsonNode config = optional("config.json");
        for (String name : List.of("bos", "eos", "pad")) {
            JsonNode id = config.path(name + "_token_id");
            JsonNode first = id.isArray() ? id.path(0) : id;
            if (first.isInt() && byText.containsValue(first.intValue())) {
                specials.putIfAbsent(name, first.intValue());
            }
        }
        if (specials.isEmpty() && byText.containsKey("<|endoftext|>")) {
            specials.put("bos", byText.get("<|endoftext|>"));
            specials.put("eos", byText.get("<|endoftext|>"));
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
                    folder.resolve(file), "not JSON: " + e.getOriginalMessage(), e);
        }
    }

    private String text(String file) {
        try {
            return Files.readString(folder.resolve(file), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw StoredFileException.of(folder.resolve(file), "read the tokenizer", e);
        }
    }
}
