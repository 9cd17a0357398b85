package dev.penstock.runtime.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The recorded numbers are those of Hugging Face's library in Python, see {@code record.py}. */
class TokenizerFilesTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir private Path folder;

    static Path recorded(String name) {
        URL url = TokenizerFilesTest.class.getResource("/tokenizers/" + name);
        try {
            return Path.of(Objects.requireNonNull(url).toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    private static JsonNode record(String name) throws IOException {
        return JSON.readTree(recorded(name).resolve("recorded.json").toFile());
    }

    private static int[] ids(JsonNode row) {
        return StreamSupport.stream(row.path("ids").spliterator(), false)
                .mapToInt(JsonNode::asInt)
                .toArray();
    }

    @ParameterizedTest
    @ValueSource(strings = {"pair", "split", "pieces", "unigram", "words"})
    void everyKindEncodesAsHuggingFaceDoes(String name) throws IOException {
        JsonNode record = record(name);
        String path = recorded(name).toString();

        Tokenizer tokenizer = Tokenizer.open(path);

        assertThat(tokenizer.name()).isEqualTo(path);
        assertThat(tokenizer.vocabulary()).isEqualTo(record.path("vocabulary").asInt());
        assertThat(Tokenizer.vocabularyOf(path)).isEqualTo(tokenizer.vocabulary());
        assertThat(tokenizer.documentSeparator()).isEqualTo(record.path("endOfText").asInt());
        assertThat(tokenizer.endOfText()).hasValue(tokenizer.documentSeparator());
        assertThat(record.path("texts"))
                .hasSizeGreaterThan(12)
                .allSatisfy(
                        row ->
                                assertThat(tokenizer.encode(row.path("text").asText()))
                                        .as(row.path("text").asText())
                                        .containsExactly(ids(row)));
    }

    /** What is named must exist; without a name it is the token that ends the text before. */
    @ParameterizedTest
    @ValueSource(strings = {"pair", "split"})
    void aTextBeginsWithTheTokenThatTheFilesName(String name) throws IOException {
        for (String file : List.of("tokenizer.json", "vocab.json", "merges.txt")) {
            if (Files.exists(recorded(name).resolve(file))) {
                Files.copy(recorded(name).resolve(file), folder.resolve(file));
            }
        }
        int end = Tokenizer.open(folder.toString()).documentSeparator();
        assertThat(Tokenizer.open(folder.toString()).textStart()).isEqualTo(end);

        Files.writeString(
                folder.resolve("special_tokens_map.json"), "{\"bos_token\": {\"content\": \"a\"}}");
        Tokenizer named = Tokenizer.open(folder.toString());
        assertThat(named.textStart()).isEqualTo(named.encode("a")[0]).isNotEqualTo(end);
        assertThat(named.documentSeparator()).isEqualTo(end);

        Files.writeString(
                folder.resolve("special_tokens_map.json"), "{\"bos_token\": \"not a token\"}");
        assertThat(Tokenizer.open(folder.toString()).textStart()).isEqualTo(end);
    }

    @ParameterizedTest
    @ValueSource(strings = {"pair", "split", "pieces"})
    void theTextComesBackFromTokensThatLoseNothing(String name) throws IOException {
        Tokenizer tokenizer = Tokenizer.open(recorded(name).toString());

        for (JsonNode row : record(name).path("texts")) {
            String text = row.path("text").asText();
            String back = tokenizer.decode(tokenizer.encode(text));
            // SentencePiece puts a space before a text
            assertThat(name.equals("pieces") && !text.isEmpty() ? back.substring(1) : back)
                    .isEqualTo(text);
        }
    }

    @Test
    void anAddedTokenInATextIsThatTokenForTheLibraryAndTextForThePair() {
        Tokenizer split = Tokenizer.open(recorded("split").toString());
        Tokenizer pair = Tokenizer.open(recorded("pair").toString());

        assertThat(split.encode("<|end_of_text|>")).containsExactly(split.documentSeparator());
        assertThat(split.decode(split.documentSeparator())).isEqualTo("<|end_of_text|>");
        assertThat(pair.encode("<|endoftext|>")).doesNotContain(pair.documentSeparator());
    }

    @ParameterizedTest
    @ValueSource(strings = {"pair", "split", "pieces", "unigram", "words"})
    void aStreamOfAnyLengthEncodesLikeTheWholeText(String name) throws IOException {
        Tokenizer tokenizer = Tokenizer.open(recorded(name).toString());
        Random random = new Random(11);
        String[] words = {
            "water", " pipe", "\n", ".\n", "\n/", "\n\n", "  ", "\t", "世界", "'s", "12", "\u00a0"
        };
        StringBuilder text = new StringBuilder();
        while (text.length() < 350_000) {
            text.append(words[random.nextInt(words.length)]);
        }
        IntStream.Builder streamed = IntStream.builder();

        tokenizer.encode(
                new ByteArrayInputStream(text.toString().getBytes(StandardCharsets.UTF_8)),
                streamed::add);

        assertThat(streamed.build().toArray()).isEqualTo(tokenizer.encode(text.toString()));
    }

    @Test
    void aLongTextWithoutAPlaceToCutIsRefusedByALibraryThatTakesItWhole() {
        Tokenizer pieces = Tokenizer.open(recorded("pieces").toString());
        byte[] text = "word\n".repeat(4 << 20).getBytes(StandardCharsets.UTF_8);

        assertThatThrownBy(() -> pieces.encode(new ByteArrayInputStream(text), _ -> {}))
                .isInstanceOf(TextTooLongException.class)
                .hasMessageContaining("16 Mi");
    }

    /** A line of words is cut between them; what the whole gives does not change. */
    @ParameterizedTest
    @ValueSource(strings = {"pair", "gpt2"})
    void aLineOfManyMegabytesIsCutBetweenWords(String name) throws IOException {
        Tokenizer tokenizer =
                Tokenizer.open(name.equals("gpt2") ? name : recorded(name).toString());
        Random random = new Random(12);
        String[] words = {
            "water", " pipe", "  ", ".", "世界", "'s", " '", "12", "\u00a0", " \n ", "𝔸"
        };
        StringBuilder text = new StringBuilder();
        while (text.length() < 3 << 20) {
            text.append(words[random.nextInt(words.length)]);
        }
        byte[] utf8 = text.toString().getBytes(StandardCharsets.UTF_8);
        TextPieces pieces = tokenizer.pieces(new ByteArrayInputStream(utf8));
        IntStream.Builder streamed = IntStream.builder();
        int count = 0;

        for (TextPieces.Piece piece = pieces.next(); piece != null; piece = pieces.next()) {
            count++;
            IntStream.of(piece.encode()).forEach(streamed::add);
        }

        assertThat(count).isEqualTo(3);
        assertThat(streamed.build().toArray()).isEqualTo(tokenizer.encode(text.toString()));
    }

    /** Merges everything anew after every merge, over lists of strings. */
    private static List<String> slowly(String word, List<String> merges) {
        List<String> parts = new java.util.ArrayList<>();
        for (byte value : word.getBytes(StandardCharsets.UTF_8)) {
            parts.add("" + ByteSymbols.of(Byte.toUnsignedInt(value)));
        }
        for (String merge : merges) {
            // the first merge in order that applies anywhere, applied everywhere from the left,
            // then again from the first: what was made may be part of an earlier merge only if
            // that one had been learned later, which cannot be
            for (int i = 0; i + 1 < parts.size(); i++) {
                if ((parts.get(i) + " " + parts.get(i + 1)).equals(merge)) {
                    parts.set(i, parts.get(i) + parts.remove(i + 1));
                }
            }
        }
        return parts;
    }

    @Test
    void shortAndLongWordsMergeLikeAPlainLoopOverTheMerges() throws IOException {
        Tokenizer pair = Tokenizer.open(recorded("pair").toString());
        List<String> merges =
                Files.readAllLines(recorded("pair").resolve("merges.txt")).stream()
                        .skip(1)
                        .toList();
        JsonNode ids = JSON.readTree(recorded("pair").resolve("vocab.json").toFile());
        Random random = new Random(5);

        for (int i = 0; i < 300; i++) {
            int length = 1 + random.nextInt(i % 10 == 0 ? 400 : 30);
            String word =
                    random.ints(length, 0, 12)
                            .mapToObj("etaoinsrhlé世"::charAt)
                            .map(c -> "" + (char) (int) c)
                            .reduce("", String::concat);
            int[] expected =
                    slowly(word, merges).stream().mapToInt(t -> ids.path(t).asInt()).toArray();
            assertThat(pair.encode(word)).as(word).containsExactly(expected);
        }
    }

    @Test
    void theSameFilesElsewhereHaveTheSameFingerprint() throws IOException {
        copy("pair");
        Tokenizer here = Tokenizer.open(folder.toString());
        Tokenizer there = Tokenizer.open(recorded("pair").resolve("merges.txt").toString());

        assertThat(here.fingerprint()).isEqualTo(there.fingerprint());
        assertThat(here.fingerprint())
                .isNotEqualTo(Tokenizer.open(recorded("split").toString()).fingerprint());
    }

    @Test
    void tokensThatWereAddedLaterAreCountedAndTheNamedOneEndsTexts() throws IOException {
        copy("pair");
        Files.writeString(folder.resolve("added_tokens.json"), "{\"<stop>\": 703}");
        Files.writeString(
                folder.resolve("tokenizer_config.json"),
                "{\"eos_token\": \"<stop>\", \"tokenizer_class\": \"GPT2TokenizerFast\"}");

        Tokenizer tokenizer = Tokenizer.open(folder.toString());

        assertThat(tokenizer.vocabulary()).isEqualTo(704);
        assertThat(tokenizer.documentSeparator()).isEqualTo(703);
        assertThat(tokenizer.decode(701)).isEqualTo("\uFFFD");
        assertThat(tokenizer.decode(703)).isEqualTo("<stop>");
    }

    static Stream<List<String>> badFiles() {
        return Stream.of(
                List.of("pair", "vocab.json", "{\"a\": 1", "one whole JSON object"),
                List.of("pair", "vocab.json", "{\"a\": \"x\"}", "without a number"),
                List.of("pair", "vocab.json", "{\"a\": -1}", "numbers of tokens from 0"),
                List.of("pair", "vocab.json", "{\"a\": 99999999999}", "numbers of tokens from 0"),
                List.of("pair", "vocab.json", "{\"a\": 1, \"b\": 1}", "'a' and 'b' for 1"),
                List.of("pair", "vocab.json", "{\"a\": 1}", "256 bytes"),
                List.of("pair", "vocab.json", "[1]", "something else"),
                List.of("pair", "merges.txt", "#version: 0.2\nt h\nt h e", "line 3"),
                List.of("pair", "merges.txt", "t qqq", "tokens of vocab.json in line 1"),
                List.of("pair", "added_tokens.json", "{\"x\": 3}", "for 3"),
                List.of("pair", "tokenizer_config.json", "{\"eos_token\": \"</s>\"}", "</s>"),
                List.of(
                        "pair",
                        "tokenizer_config.json",
                        "{\"tokenizer_class\": \"Qwen2Tokenizer\"}",
                        "Qwen2Tokenizer"),
                List.of(
                        "pair",
                        "tokenizer_config.json",
                        "{\"add_prefix_space\": true}",
                        "add_prefix_space"),
                List.of("split", "tokenizer.json", "{\"model\": {\"vocab\": {\"a\"", "torn"),
                List.of("split", "tokenizer.json", "{}", "model.vocab"),
                List.of("split", "tokenizer.json", "{\"model\": 3}", "a model that is none"),
                List.of("split", "tokenizer.json", "{\"model\": {\"vocab\": 3}}", "vocab"),
                List.of(
                        "words",
                        "tokenizer.json",
                        "{\"model\": {\"vocab\": {\"<eos>\": 0}}}",
                        "Hugging Face's library takes"),
                List.of(
                        "words",
                        "tokenizer.json",
                        "{\"model\": {\"vocab\": {\"a\": 0}}}",
                        "a token that ends a text"));
    }

    @ParameterizedTest
    @MethodSource("badFiles")
    void aFileThatCannotBeUsedIsNamedWithTheReason(List<String> bad) throws IOException {
        copy(bad.get(0));
        Files.writeString(folder.resolve(bad.get(1)), bad.get(2));

        assertThatThrownBy(() -> Tokenizer.open(folder.toString()))
                .isInstanceOf(TokenizerFileException.class)
                .hasMessageContaining(folder.toString())
                .hasMessageContaining(bad.get(3));
    }

    @Test
    void aTornFileIsNoticedWhereverItEnds() throws IOException {
        copy("split");
        Path file = folder.resolve("tokenizer.json");
        byte[] whole = Files.readAllBytes(file);

        for (int length = 0; length < whole.length; length += 997) {
            Files.write(file, Arrays.copyOf(whole, length));
            assertThatThrownBy(() -> Tokenizer.open(folder.toString()))
                    .isInstanceOf(TokenizerFileException.class);
        }
    }

    @Test
    void aPathWithoutATokenizerIsAnsweredWithWhatIsExpected() throws IOException {
        Path text = Files.writeString(folder.resolve("corpus.txt"), "text");

        for (Path path : List.of(folder, text, folder.resolve("none"))) {
            assertThatThrownBy(() -> Tokenizer.open(path.toString()))
                    .isInstanceOf(TokenizerFileException.class)
                    .hasMessageContaining(path.toString())
                    .hasMessageContaining("tokenizer.json")
                    .hasMessageContaining("bytes, gpt2");
        }
    }

    private void copy(String name) throws IOException {
        try (Stream<Path> files = Files.list(recorded(name))) {
            for (Path file : files.toList()) {
                Files.copy(file, folder.resolve(file.getFileName()));
            }
        }
    }
}
