package dev.penstock.runtime.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BytePairTrainerTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir private Path folder;

    private static String text() throws IOException {
        return Files.readString(TokenizerFilesTest.recorded("trained").resolve("text.txt"));
    }

    private static TrainedPairs train(String text, int vocabulary) {
        WordCounts words = new WordCounts();
        words.encode(text);
        return BytePairTrainer.train(words, vocabulary, _ -> {});
    }

    private void write(TrainedPairs trained) throws IOException {
        for (Map.Entry<String, String> text : trained.texts().entrySet()) {
            Files.writeString(folder.resolve(text.getKey()), text.getValue());
        }
    }

    private List<String> merges(TrainedPairs trained) throws IOException {
        write(trained);
        List<String> lines = Files.readAllLines(folder.resolve("merges.txt"));
        return lines.subList(1, lines.size());
    }

    @Test
    void learnsTheMergesThatHuggingFaceLearns() throws IOException {
        List<String> recorded =
                Files.readAllLines(TokenizerFilesTest.recorded("trained").resolve("merges.txt"));

        TrainedPairs trained = train(text(), 901);

        assertThat(merges(trained)).isEqualTo(recorded.subList(1, recorded.size()));
        assertThat(trained.vocabulary()).isEqualTo(901);
    }

    /** Counts all pairs of all words anew for every merge. */
    private static List<String> slowly(String text, int merges) {
        Map<List<Integer>, Long> words = new HashMap<>();
        List<String> tokens = new ArrayList<>();
        IntStream.range(0, 256).mapToObj(b -> "" + ByteSymbols.of(b)).sorted().forEach(tokens::add);
        Gpt2Words.forEach(
                text,
                word -> {
                    List<Integer> ids = new ArrayList<>();
                    for (char c :
                            ByteSymbols.of(word.getBytes(StandardCharsets.UTF_8)).toCharArray()) {
                        ids.add(tokens.indexOf("" + c));
                    }
                    words.merge(ids, 1L, Long::sum);
                });
        List<String> learned = new ArrayList<>();
        while (learned.size() < merges) {
            Map<List<Integer>, Long> pairs = new HashMap<>();
            words.forEach(
                    (word, count) -> {
                        for (int i = 0; i + 1 < word.size(); i++) {
                            pairs.merge(List.of(word.get(i), word.get(i + 1)), count, Long::sum);
                        }
                    });
            List<Integer> best = List.of();
            long most = 1;
            for (Map.Entry<List<Integer>, Long> pair : pairs.entrySet()) {
                long count = pair.getValue();
                List<Integer> ids = pair.getKey();
                boolean earlier =
                        !best.isEmpty()
                                && (ids.get(0) < best.get(0)
                                        || (ids.get(0).equals(best.get(0))
                                                && ids.get(1) < best.get(1)));
                if (count > most || (count == most && earlier)) {
                    best = ids;
                    most = count;
                }
            }
            if (best.isEmpty()) {
                return learned;
            }
            learned.add(tokens.get(best.get(0)) + " " + tokens.get(best.get(1)));
            tokens.add(tokens.get(best.get(0)) + tokens.get(best.get(1)));
            Map<List<Integer>, Long> merged = new HashMap<>();
            for (Map.Entry<List<Integer>, Long> word : words.entrySet()) {
                List<Integer> ids = new ArrayList<>(word.getKey());
                for (int i = 0; i + 1 < ids.size(); i++) {
                    if (ids.get(i).equals(best.get(0)) && ids.get(i + 1).equals(best.get(1))) {
                        ids.set(i, tokens.size() - 1);
                        ids.remove(i + 1);
                    }
                }
                merged.merge(ids, word.getValue(), Long::sum);
            }
            words.clear();
            words.putAll(merged);
        }
        return learned;
    }

    @Test
    void learnsWhatAPlainLoopLearnsOnWordsFullOfTies() throws IOException {
        for (int seed = 0; seed < 12; seed++) {
            Random random = new Random(seed);
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < 150; i++) {
                random.ints(1 + random.nextInt(7), 0, 3 + seed % 3)
                        .forEach(c -> text.append("abéxy".charAt(c)));
                text.append(' ');
            }

            TrainedPairs trained = train(text.toString(), 10_000);

            assertThat(merges(trained)).isEqualTo(slowly(text.toString(), 10_000));
        }
    }

    @Test
    void theOrderOfTheTextAndTheThreadsDoNotMatter() throws IOException {
        WordCounts words = new WordCounts();
        List<String> lines = new ArrayList<>(text().lines().map(line -> line + "\n").toList());
        List<String> backwards = lines.reversed();
        backwards.parallelStream().forEach(words::encode);

        List<String> merges = merges(BytePairTrainer.train(words, 600, _ -> {}));

        WordCounts inOrder = new WordCounts();
        lines.forEach(inOrder::encode);
        assertThat(merges).isEqualTo(merges(BytePairTrainer.train(inOrder, 600, _ -> {})));
    }

    @Test
    void bothFormsOfItsFilesGiveTheSameTokensAndTheTextBack() throws IOException {
        String text = text();
        write(train(text, 700));

        Tokenizer pair = Tokenizer.open(folder.resolve("vocab.json").toString());
        Tokenizer library = Tokenizer.open(folder.toString());

        assertThat(pair.vocabulary()).isEqualTo(700);
        assertThat(pair.documentSeparator()).isEqualTo(699);
        assertThat(pair.decode(699)).isEqualTo("<|endoftext|>");
        assertThat(pair.encode(text)).hasSizeLessThan(text.length() / 2);
        assertThat(pair.decode(pair.encode(text))).isEqualTo(text);
        assertThat(library).isInstanceOf(JsonTokenizer.class);
        assertThat(library.encode(text)).isEqualTo(pair.encode(text));
        assertThat(library.vocabulary()).isEqualTo(700);
        assertThat(library.documentSeparator()).isEqualTo(699);
        assertThat(JSON.readTree(folder.resolve("tokenizer_config.json").toFile()).get("eos_token"))
                .hasToString("\"<|endoftext|>\"");
    }

    @Test
    void aTextWithoutPairsThatComeTwiceGivesTheBytesAlone() {
        TrainedPairs trained = train("abcdef", 1_000);

        assertThat(trained.vocabulary()).isEqualTo(257);
    }

    @Test
    void countsWordsOfAStreamAsThoseOfTheWholeText() throws IOException {
        String text = text().repeat(60);
        WordCounts whole = new WordCounts();
        whole.encode(text);
        WordCounts streamed = new WordCounts();
        TextPieces pieces =
                streamed.pieces(new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8)));
        for (TextPieces.Piece piece = pieces.next(); piece != null; piece = pieces.next()) {
            assertThat(piece.encode()).isEmpty();
        }

        assertThat(streamed.sorted()).isEqualTo(whole.sorted());
    }
}
