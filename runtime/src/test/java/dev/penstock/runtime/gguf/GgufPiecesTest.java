package dev.penstock.runtime.gguf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.TensorSource;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.vocabulary.Vocabulary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tokenizers like SentencePiece's in GGUF. {@link ScoreMerger} tokenizes with what is written, and
 * Hugging Face's library with what was read: they must agree.
 */
class GgufPiecesTest {
    private static final Path TOKENIZERS = Path.of("src/test/resources/tokenizers");
    private static final Path MODEL = Path.of("src/test/resources/golden-models/llama");
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final List<String> TEXTS =
            List.of(
                    "",
                    " ",
                    "Hello, world!",
                    "  two spaces,   three\tand a tab \n\n\n  then lines \r\n and the end   ",
                    "Grüße, 世界! 🚰🇨🇭 e\u0301 é \u0000\u0001\u007f\u0080 \u2581a\u2581\u2581b",
                    "public static void main(String[] args) { System.out.println(\"a\\n\"); }",
                    "a <s>b</s> c<unk><tool> <tool>d <tool> </s>\n<s>",
                    "<s>",
                    "<s",
                    "</",
                    "unk> tool> <to ol>",
                    "السلام शस ไทย שלום",
                    "a".repeat(300),
                    "ab".repeat(150) + " ".repeat(40) + "\n".repeat(20),
                    "12345 3.14159 1,000,000 https://example.org/a?b=c&d=%20#e ...!!! -----");

    @TempDir private Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"sentencepiece", "pieces"})
    void scoresMakeTheTokensThatTheMergesMake(String name) throws IOException {
        Path source = TOKENIZERS.resolve(name);
        ScoreMerger scores = new ScoreMerger(written(source));
        Tokenizer merges = Tokenizer.open(source.toString());

        for (String text : texts(merges)) {
            assertThat(scores.encode(text)).as(text).isEqualTo(merges.encode(text));
        }
    }

    /**
     * The texts above, and a thousand put together of tokens in any order, which reach far more.
     */
    private static List<String> texts(Tokenizer tokenizer) {
        List<String> texts = new ArrayList<>(TEXTS);
        Random random = new Random(11);
        for (int i = 0; i < 1000; i++) {
            StringBuilder text = new StringBuilder();
            for (int j = random.nextInt(12); j >= 0; j--) {
                int token = random.nextInt(tokenizer.vocabulary());
                text.append(tokenizer.decode(token).replace("\ufffd", "ö"));
            }
            texts.add(text.toString());
        }
        for (int i = 0; i < 300; i++) { // few letters, so that the same ones overlap
            StringBuilder text = new StringBuilder();
            random.ints(random.nextInt(30), 0, 5).forEach(c -> text.append("aes t".charAt(c)));
            texts.add(text.toString());
        }
        return texts;
    }

    @Test
    void theFileSaysWhatTheTokensAre() throws IOException {
        GgufReader gguf = written(TOKENIZERS.resolve("sentencepiece"));

        List<?> tokens = (List<?>) gguf.value("tokenizer.ggml.tokens");
        List<?> types = (List<?>) gguf.value("tokenizer.ggml.token_type");
        List<?> scores = (List<?>) gguf.value("tokenizer.ggml.scores");
        assertThat(tokens.subList(0, 5).toString()).isEqualTo("[<unk>, <s>, </s>, <tool>, <0x00>]");
        assertThat(types.subList(0, 5).toString()).isEqualTo("[2, 3, 3, 4, 6]");
        assertThat(types.get(tokens.indexOf("e"))).isEqualTo(1);
        // SentencePiece numbers what it merges from the first on
        assertThat(scores.get(260)).isEqualTo(0f);
        assertThat((Float) scores.get(261)).isLessThan(0f);
        assertThat(tokens).hasSize(800);
        assertThat(scores).hasSize(800);
        assertThat(types.get(799)).isEqualTo(5);
        assertThat(gguf.metadata)
                .containsEntry("tokenizer.ggml.model", "llama")
                .containsEntry("tokenizer.ggml.pre", "default")
                .containsEntry("tokenizer.ggml.bos_token_id", 1)
                .containsEntry("tokenizer.ggml.eos_token_id", 2)
                .containsEntry("tokenizer.ggml.unknown_token_id", 0)
                .containsEntry("tokenizer.ggml.add_bos_token", true)
                .containsEntry("tokenizer.ggml.add_eos_token", false)
                .containsEntry("tokenizer.ggml.add_space_prefix", true)
                .doesNotContainKey("tokenizer.ggml.merges");
    }

    /**
     * Small tokenizers with merges in any order, and every text of up to five of their letters:
     * those that are taken agree everywhere, and of those that are refused one token's own text
     * shows why.
     */
    @ParameterizedTest
    @ValueSource(strings = {"Replace", "Metaspace", "Metaspace, words apart"})
    void exactlyWhatNoScoresExpressIsRefused(String spaces) throws IOException {
        Random random = new Random(5);
        int taken = 0;
        int refused = 0;
        for (int i = 0; i < 40; i++) {
            ObjectNode json = random(random);
            if (!spaces.equals("Replace")) {
                json.putNull("normalizer");
                json.putObject("pre_tokenizer")
                        .put("type", "Metaspace")
                        .put("replacement", "\u2581")
                        .put("prepend_scheme", "never")
                        .put("split", spaces.endsWith("apart"));
            }
            Path source = Files.createTempDirectory(folder, "random");
            Files.writeString(source.resolve("tokenizer.json"), json.toString());
            Tokenizer merges = Tokenizer.open(source.toString());
            try {
                ScoreMerger scores = new ScoreMerger(written(source));
                for (String text : allTexts()) {
                    assertThat(scores.encode(text)).as(text).isEqualTo(merges.encode(text));
                }
                taken++;
            } catch (StoredFileException e) {
                assertThat(e).hasMessageContaining("joins any two");
                assertThat(json.path("model").path("vocab").properties())
                        .anyMatch(token -> merges.encode(token.getKey()).length == 2);
                refused++;
            }
        }
        assertThat(taken).isGreaterThan(5);
        assertThat(refused).isGreaterThan(3);
    }

    private static List<String> allTexts() {
        List<String> texts = new ArrayList<>(List.of(""));
        for (int i = 0; i < texts.size() && texts.get(i).length() < 5; i++) {
            for (String letter : List.of("a", "b", " ")) {
                texts.add(texts.get(i) + letter);
            }
        }
        return texts;
    }

    private static ObjectNode random(Random random) throws IOException {
        ObjectNode json = JSON.createObjectNode();
        ArrayNode added = json.putArray("added_tokens");
        ObjectNode model = json.putObject("model");
        model.put("type", "BPE").put("unk_token", "<unk>").put("byte_fallback", true);
        ObjectNode vocabulary = model.putObject("vocab");
        for (String special : List.of("<unk>", "<s>", "</s>")) {
            added.addObject()
                    .put("id", vocabulary.size())
                    .put("content", special)
                    .put("single_word", false)
                    .put("lstrip", false)
                    .put("rstrip", false)
                    .put("normalized", false)
                    .put("special", true);
            vocabulary.put(special, vocabulary.size());
        }
        for (int i = 0; i < 256; i++) {
            vocabulary.put("<0x%02X>".formatted(i), vocabulary.size());
        }
        List<String> pieces = new ArrayList<>(List.of("a", "b", "\u2581"));
        pieces.forEach(letter -> vocabulary.put(letter, vocabulary.size()));
        ArrayNode merges = model.putArray("merges");
        for (int i = random.nextInt(2, 8); i > 0; i--) {
            String first = pieces.get(random.nextInt(pieces.size()));
            String second = pieces.get(random.nextInt(pieces.size()));
            if (first.length() + second.length() <= 4) {
                merges.addArray().add(first).add(second);
                if (!vocabulary.has(first + second)) {
                    pieces.add(first + second);
                    vocabulary.put(first + second, vocabulary.size());
                }
            }
        }
        json.set(
                "normalizer",
                JSON.readTree(
                        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"}"));
        return json;
    }

    /** Metaspace puts no second space in front of one, which no file for engines can say. */
    @ParameterizedTest
    @CsvSource({"always, false", "first, false", "never, false"})
    void metaspacesMakeTheSameTokens(String scheme, boolean split) throws IOException {
        Path source =
                changed(
                        json -> {
                            json.putNull("normalizer");
                            json.putObject("pre_tokenizer")
                                    .put("type", "Metaspace")
                                    .put("replacement", "\u2581")
                                    .put("prepend_scheme", scheme)
                                    .put("split", split);
                        });
        ScoreMerger scores = new ScoreMerger(written(source));
        Tokenizer merges = Tokenizer.open(source.toString());

        for (String text : texts(merges)) {
            boolean special = text.contains("<");
            if (!text.startsWith(" ") && !text.startsWith("\u2581") && !special) {
                assertThat(scores.encode(text)).as(text).isEqualTo(merges.encode(text));
            }
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "/normalizer | {\"type\": \"NFKC\"} | a normalizer of Prepend and Replace with U+2581",
                "/normalizer | null | expected spaces that become U+2581",
                "/pre_tokenizer | {\"type\": \"Metaspace\", \"replacement\": \"\u2581\"} | and no"
                        + " Prepend",
                "/post_processor | {\"type\": \"BertProcessing\"} | post_processor TemplateProcessing",
                "/post_processor/single/0/SpecialToken/id | \"<tool>\" | puts bos_token before",
                "/model/ignore_merges | true | expected ignore_merges false",
                "/model/merges/0 | [\"a\", \"b\", \"c\"] | expected merges of two tokens",
                "/model/merges/0 | [\"<0x0A>\", \"a\"] | merge 0: no token '<0x0A>a'",
                "/model/vocab/<0x0A> | gone | expected a token for each of 256 bytes, got 255",
                "/added_tokens/3/lstrip | true | that stand for their text alone",
                "/added_tokens/3/normalized | true | that stand for their text alone",
            })
    void whatEnginesDoInAnotherWayIsRefused(String where, String value, String problem)
            throws IOException {
        Path source =
                changed(
                        json -> {
                            int end = where.lastIndexOf('/');
                            String last = where.substring(end + 1);
                            if (json.at(where.substring(0, end)) instanceof ArrayNode list) {
                                list.set(Integer.parseInt(last), tree(value));
                            } else if (value.equals("gone")) {
                                ((ObjectNode) json.at(where.substring(0, end))).remove(last);
                            } else {
                                ((ObjectNode) json.at(where.substring(0, end)))
                                        .set(last, tree(value));
                            }
                        });

        assertThatThrownBy(() -> Vocabulary.in(source)).hasMessageContaining(problem);
    }

    @Test
    void ofManyProblemsTheFirstAreTold() throws IOException {
        Path source =
                changed(
                        json -> {
                            ArrayNode merges = (ArrayNode) json.at("/model/merges");
                            merges.removeAll();
                            for (int i = 0; i < 5000; i++) {
                                merges.addArray().add("a");
                            }
                        });

        assertThatThrownBy(() -> Vocabulary.in(source))
                .hasMessageContaining("expected merges of two tokens, got [\"a\"]")
                .hasMessageMatching("(?s).*\\n  and 4,990 more");
    }

    @Test
    void aTokenThatItsMergesLeaveInTwoIsRefusedByItsName() throws IOException {
        Path source =
                changed(
                        json -> {
                            ArrayNode merges = (ArrayNode) json.at("/model/merges");
                            ObjectNode vocabulary = (ObjectNode) json.at("/model/vocab");
                            vocabulary.put("qz", vocabulary.size());
                            merges.insert(0, JSON.createArrayNode().add("q").add("z"));
                            vocabulary.put("qzqz", vocabulary.size());
                        });

        assertThatThrownBy(() -> Vocabulary.in(source))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("token 701, 'qzqz': its merges leave 'qz' and 'qz'");
    }

    private static JsonNode tree(String json) {
        try {
            return JSON.readTree(json);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    private Path changed(Consumer<ObjectNode> change) throws IOException {
        Path from = TOKENIZERS.resolve("sentencepiece");
        Path to = Files.createTempDirectory(folder, "changed");
        ObjectNode json =
                (ObjectNode) JSON.readTree(Files.readString(from.resolve("tokenizer.json")));
        change.accept(json);
        Files.writeString(to.resolve("tokenizer.json"), json.toString());
        Files.copy(from.resolve("tokenizer_config.json"), to.resolve("tokenizer_config.json"));
        return to;
    }

    private static GgufReader written(Path source, Path into) throws IOException {
        Path file = into.resolve("model.gguf");
        Files.deleteIfExists(file);
        ObjectNode config =
                (ObjectNode) JSON.readTree(Files.readString(MODEL.resolve("config.json")));
        try (SafetensorsFile model = SafetensorsFile.open(MODEL.resolve("model.safetensors"))) {
            GgufModel.of(
                            into,
                            config.put("vocab_size", 800),
                            new ArrayList<TensorSource>(model.tensors()),
                            Vocabulary.in(source).orElseThrow(),
                            GgufModel.Form.F32)
                    .write(file);
        }
        return new GgufReader(file);
    }

    private GgufReader written(Path source) throws IOException {
        return written(source, folder);
    }
}
