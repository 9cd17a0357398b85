package dev.penstock.runtime.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TextCorpusTest {
    @TempDir Path directory;

    /** 100 letters, digits and signs, each once, so that a token tells its place. */
    private static final byte[] PLACES = places(100);

    private static byte[] places(int count) {
        byte[] places = new byte[count];
        IntStream.range(0, count).forEach(i -> places[i] = (byte) (i + 100));
        return places;
    }

    @Test
    void rowsAreConsecutiveTokensAndFollowFromTheStepAlone() throws Exception {
        Specs specs = Specs.of(Files.write(directory.resolve("a.bin"), PLACES));
        TrainingData once = TrainingData.open(specs.spec());
        TrainingData again = TrainingData.open(specs.spec());
        // the second reads later steps only, as a resumed run does
        for (long step = 30; step < 33; step++) {
            for (int microBatch = 1; microBatch >= 0; microBatch--) {
                int[] batch = read(once, StepKind.TRAIN, step, microBatch);
                assertThat(read(again, StepKind.TRAIN, step, microBatch)).isEqualTo(batch);
                for (int i = 0; i < batch.length; i++) {
                    assertThat(batch[i]).isEqualTo(batch[i / 9 * 9] + i % 9);
                }
            }
        }
        assertThat(once.description())
                .isEqualTo("100 tokens (bytes) of 1 file: 80 to train on, 20 held out");
    }

    @Test
    void trainingAndHeldOutTokensAreDisjointAndBothAreUsedUp() throws Exception {
        TrainingData data =
                TrainingData.open(Specs.of(Files.write(directory.resolve("a.bin"), PLACES)).spec());
        Set<Integer> training = new HashSet<>();
        Set<Integer> heldOut = new HashSet<>();
        for (long step = 1; step < 100; step++) {
            for (int token : read(data, StepKind.TRAIN, step, 1)) {
                training.add(token - 100);
            }
            for (int token : read(data, StepKind.EVALUATE, step - 1, 1)) {
                heldOut.add(token - 100);
            }
        }

        assertThat(training)
                .containsExactlyInAnyOrderElementsOf(IntStream.range(0, 80).boxed().toList());
        assertThat(heldOut)
                .containsExactlyInAnyOrderElementsOf(IntStream.range(80, 97).boxed().toList());
    }

    /** 80 tokens to train on are 9 windows of 8, so three steps of 4, 4 and 1 sequences. */
    @Test
    void theLastStepOfAnEpochMayBeSmallerAndNoSequenceComesTwice() throws Exception {
        Specs specs = Specs.of(Files.write(directory.resolve("a.bin"), PLACES)).smallerLast();
        TrainingData data = TrainingData.open(specs.spec());
        for (int epoch = 0; epoch < 3; epoch++) {
            List<Integer> targets = new ArrayList<>();
            List<Integer> sizes = new ArrayList<>();
            for (long step = 3L * epoch + 1; step <= 3L * epoch + 3; step++) {
                sizes.add(data.sequences(StepKind.TRAIN, step, 4));
                targets.addAll(targets(data, StepKind.TRAIN, step));
            }

            assertThat(sizes).containsExactly(4, 4, 1);
            assertThat(targets).hasSize(9 * 8).doesNotHaveDuplicates();
        }
        List<Integer> heldOut = new ArrayList<>(targets(data, StepKind.EVALUATE, 0));
        assertThat(data.heldOutBatches()).isEqualTo(1);
        assertThat(data.sequences(StepKind.EVALUATE, 0, 4)).isEqualTo(2);
        assertThat(heldOut).hasSize(16).doesNotHaveDuplicates();
    }

    /** Of the sequences that are there. */
    private static List<Integer> targets(TrainingData data, StepKind kind, long step) {
        List<Integer> targets = new ArrayList<>();
        for (int sequence = 0; sequence < data.sequences(kind, step, 4); sequence++) {
            int[] batch = read(data, kind, step, sequence / 2);
            for (int i = 1; i < 9; i++) {
                targets.add(batch[sequence % 2 * 9 + i]);
            }
        }
        return targets;
    }

    @Test
    void heldOutBatchesAreTheSameForEverySeed() throws Exception {
        Specs specs = Specs.of(Files.write(directory.resolve("a.bin"), PLACES));
        TrainingData one = TrainingData.open(specs.seed(1).spec());
        TrainingData two = TrainingData.open(specs.seed(2).spec());

        assertThat(read(one, StepKind.EVALUATE, 0, 0))
                .isEqualTo(read(two, StepKind.EVALUATE, 0, 0));
        assertThat(read(one, StepKind.TRAIN, 1, 0)).isNotEqualTo(read(two, StepKind.TRAIN, 1, 0));
    }

    @Test
    void withoutAFractionNothingIsHeldOut() throws Exception {
        TrainingData data =
                TrainingData.open(
                        Specs.of(Files.write(directory.resolve("a.bin"), PLACES))
                                .validationFraction(0)
                                .spec());

        assertThat(data.hasHeldOut()).isFalse();
        assertThat(data.trainingTokens()).isEqualTo(100);
        assertThatThrownBy(() -> read(data, StepKind.EVALUATE, 0, 0))
                .hasMessageContaining("data.validation-fraction is 0");
    }

    @Test
    void aFileThatIsAllHeldOutIsReadToItsEndAndNothingTwice() throws Exception {
        Path file = Files.write(directory.resolve("a.bin"), PLACES);
        TrainingData data =
                TrainingData.open(Specs.of(file).validationFraction(1).smallerLast().spec());
        List<Integer> targets = new ArrayList<>();
        for (int batch = 0; batch < data.heldOutBatches(); batch++) {
            targets.addAll(targets(data, StepKind.EVALUATE, batch));
        }

        assertThat(targets)
                .containsExactlyInAnyOrderElementsOf(
                        IntStream.range(101, 197).boxed().toList()); // 12 windows of 8
        assertThat(data.trainingTokens()).isZero();
        assertThat(data.heldOutBytes(12)).isEqualTo(96);
        assertThat(data.heldOutBytes(3)).isEqualTo(24);
        assertThat(data.heldOutTargets(30)).isEqualTo(96);
        assertThat(data.heldOutRows(2)).isEqualTo(8);
        assertThat(data.heldOutRows(30)).isEqualTo(12);
    }

    /** Words, letters of two and three bytes, and one of four that is several tokens. */
    @Test
    void bytesOfGpt2TokensAreThoseOfTheText() throws Exception {
        Tokenizer gpt2 = Tokenizer.named("gpt2");
        String text = "naïve \u20ac 12 \ud83d\ude00 words ".repeat(20);
        while ((gpt2.encode(text).length - 1) % 8 != 0) {
            text += "x ";
        }
        int[] tokens = gpt2.encode(text);
        Path file = Files.writeString(directory.resolve("a.txt"), text);
        DataSpec spec = Specs.of(file).validationFraction(1).tokenizer("gpt2").smallerLast().spec();
        TrainingData data = TrainingData.open(spec);

        assertThat(data.heldOutBytes((tokens.length - 1) / 8))
                .isEqualTo(Files.size(file) - gpt2.bytes(tokens[0]).length);
    }

    @Test
    void aTokenThatPartsDocumentsStandsForNoText() throws Exception {
        Files.writeString(directory.resolve("a.txt"), "one two three four");
        Files.writeString(directory.resolve("b.txt"), " five six seven eight nine ten");
        DataSpec spec = Specs.of(directory).validationFraction(1).tokenizer("gpt2").spec();

        // one |two three four (end) five six seven eight| nine ten
        assertThat(TrainingData.open(spec).heldOutBytes(1))
                .isEqualTo(" two three four five six seven eight".length());
    }

    @Test
    void filesOfAFolderAreJoinedInOrderWithASeparator() throws Exception {
        Files.createDirectories(directory.resolve("b"));
        Files.createDirectories(directory.resolve(".git"));
        Files.writeString(directory.resolve(".git/x"), "hidden");
        Files.writeString(directory.resolve("z.md"), "zzz");
        Files.writeString(directory.resolve("a.txt"), "aaa");
        writeGz(directory.resolve("b/c.txt.gz"), "ccc");

        assertThat(text(directory)).isEqualTo("aaa\nccc\nzzz");
        assertThat(text(directory.resolve("*.{md,txt}"))).isEqualTo("aaa\nzzz");
        assertThat(text(directory.resolve("**.gz"))).isEqualTo("ccc");
        assertThat(text(directory.resolve("b/c.txt.gz"))).isEqualTo("ccc");
    }

    @Test
    void linesOfJsonAreDocuments() throws Exception {
        Path lines = directory.resolve("a.jsonl");
        Files.writeString(lines, "{\"body\": \"eins ü\"}\r\n\n{\"x\":1, \"body\":\"zwei\"}");
        Specs specs = Specs.of(lines).format(DataFormat.JSONL).field("body");

        assertThat(text(specs)).isEqualTo("eins ü\nzwei");
    }

    @Test
    void gpt2SeparatesDocumentsByItsEndOfText() throws Exception {
        Files.writeString(directory.resolve("a.txt"), "Hello, world!");
        Files.writeString(directory.resolve("b.txt"), "hello world");
        Specs specs = Specs.of(directory).tokenizer("gpt2");

        Tokens tokens = new CorpusReader(specs.spec()).read(CorpusFiles.find(directory));

        int[] all = new int[(int) tokens.size()];
        tokens.copy(0, all, 0, all.length);
        assertThat(all).containsExactly(15496, 11, 995, 0, 50256, 31373, 995);
    }

    @Test
    void tokensAreKeptInOneTwoOrFourBytes() {
        for (int vocabulary : new int[] {256, 50_257, 1 << 20}) {
            Tokens tokens = new Tokens(vocabulary);
            int count = (1 << 20) + 5;
            for (int i = 0; i < count; i++) {
                tokens.add((int) (i * 7919L % vocabulary));
            }
            int[] tail = new int[10];
            tokens.copy(count - 10, tail, 0, 10);
            for (int i = 0; i < 10; i++) {
                assertThat(tail[i]).isEqualTo((int) ((count - 10 + i) * 7919L % vocabulary));
            }
            assertThat(tokens.get(vocabulary - 1)).isBetween(0, vocabulary - 1);
        }
    }

    private static String text(Path source) throws IOException {
        return text(Specs.of(source));
    }

    private static String text(Specs specs) {
        Tokens tokens =
                new CorpusReader(specs.spec()).read(CorpusFiles.find(specs.spec().source()));
        int[] all = new int[(int) tokens.size()];
        tokens.copy(0, all, 0, all.length);
        return specs.spec().tokenizer().decode(all);
    }

    private static void writeGz(Path path, String text) throws IOException {
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(path))) {
            out.write(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    private static int[] read(BatchSource data, StepKind kind, long step, int microBatch) {
        int[] batch = new int[2 * 9];
        data.read(kind, step, microBatch, batch);
        return batch;
    }
}
