package dev.penstock.runtime.data.labelled;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.data.DataSpec;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LabelledTextsTest {
    private static final List<String> LABELS = List.of("no", "yes");
    private static final Tokenizer BYTES = Tokenizer.open("bytes");
    private static final int FIRST = 256;
    private static final int BEHIND = 257;

    @TempDir Path folder;

    @Test
    void twoTextsStandBehindTheFirstTokenAndEachBeforeItsLast() {
        LabelledRow pair = PairEncoder.of(BYTES).encode(List.of("ab", "c"), 1, 16);
        LabelledRow single = PairEncoder.of(BYTES).encode(List.of("ab"), 0, 16);

        assertThat(pair.tokens()).containsExactly(FIRST, 'a', 'b', BEHIND, 'c', BEHIND);
        assertThat(pair.second()).isEqualTo(4);
        assertThat(single.tokens()).containsExactly(FIRST, 'a', 'b', BEHIND);
        assertThat(single.second()).isEqualTo(4);
    }

    @Test
    void theLongerTextLosesItsEndFirst() {
        LabelledRow row = PairEncoder.of(BYTES).encode(List.of("abcdef", "xy"), 0, 8);

        assertThat(row.tokens()).containsExactly(FIRST, 'a', 'b', 'c', BEHIND, 'x', 'y', BEHIND);
    }

    @Test
    void onlyTheFirstTokenOfATextHasATargetAndPaddingIsADocumentOfItsOwn() throws IOException {
        LabelledTexts texts = LabelledTexts.open(spec(lines("ab", "c", "yes"), 0, 8), LABELS);
        int[] inputs = new int[9];
        int[] targets = new int[9];
        byte[] marks = new byte[9];

        texts.inputs(StepKind.TRAIN, 1, 0, inputs);
        texts.read(StepKind.TRAIN, 1, 0, targets);
        texts.marks(StepKind.TRAIN, 1, 0, marks);

        int not = BatchSource.UNCOUNTED;
        int second = BatchSource.UNCOUNTED | BatchSource.SECOND;
        int begins = BatchSource.UNCOUNTED | BatchSource.BEGINS;
        assertThat(inputs).containsExactly(FIRST, 'a', 'b', BEHIND, 'c', BEHIND, 0, 0, 0);
        assertThat(targets[0]).isEqualTo(1);
        assertThat(marks)
                .containsExactly(
                        BatchSource.BEGINS, not, not, not, second, second, begins, not, not);
        assertThat(texts.counts(marks[0])).isTrue();
        assertThat(texts.counts(marks[6])).isFalse();
    }

    /** Every text once in an epoch, another order in the next one, and none of what is held out. */
    @Test
    void anEpochHasEveryTextOnceAndHoldsOutTheLastOnes() throws IOException {
        List<String> all = new ArrayList<>();
        for (char letter = 'a'; letter <= 'j'; letter++) {
            all.addAll(List.of("" + letter, "x", letter % 2 == 0 ? "yes" : "no"));
        }
        LabelledTexts texts =
                LabelledTexts.open(spec(lines(all.toArray(String[]::new)), 0.2, 8), LABELS);

        List<Integer> first = letters(texts, 1, 8);
        List<Integer> next = letters(texts, 9, 8);

        assertThat(first)
                .containsExactlyInAnyOrder(
                        (int) 'a', (int) 'b', (int) 'c', (int) 'd', (int) 'e', (int) 'f', (int) 'g',
                        (int) 'h');
        assertThat(next).containsExactlyInAnyOrderElementsOf(first).isNotEqualTo(first);
        assertThat(texts.heldOutBatches()).isEqualTo(2);
        assertThat(texts.heldOutTargets(2)).isEqualTo(2);
        int[] inputs = new int[9];
        texts.inputs(StepKind.EVALUATE, 1, 0, inputs);
        assertThat(inputs[1]).isEqualTo('j');
    }

    private static List<Integer> letters(LabelledTexts texts, long from, int steps) {
        List<Integer> letters = new ArrayList<>();
        int[] inputs = new int[9];
        for (long step = from; step < from + steps; step++) {
            texts.inputs(StepKind.TRAIN, step, 0, inputs);
            letters.add(inputs[1]);
        }
        return letters;
    }

    @Test
    void aPreparedFileHasTheSameRowsAsItsLines() throws IOException {
        Path lines = lines("ab", "c", "yes", "d", "efg", "no");
        var rows =
                List.of(
                        PairEncoder.of(BYTES).encode(List.of("ab", "c"), 1, 12),
                        PairEncoder.of(BYTES).encode(List.of("d", "efg"), 0, 12));
        Path prepared = folder.resolve("pairs.safetensors");
        new LabelledFile(LABELS, rows).write(prepared);

        LabelledFile read = LabelledFile.read(prepared);
        LabelledTexts ofFile = LabelledTexts.open(spec(prepared, DataFormat.TOKENS, 0, 12), LABELS);
        LabelledTexts ofLines = LabelledTexts.open(spec(lines, 0, 12), LABELS);

        assertThat(read.labels()).isEqualTo(LABELS);
        for (int step = 1; step <= 4; step++) {
            int[] one = new int[13];
            int[] other = new int[13];
            ofFile.inputs(StepKind.TRAIN, step, 0, one);
            ofLines.inputs(StepKind.TRAIN, step, 0, other);
            assertThat(one).isEqualTo(other);
        }
    }

    @Test
    void whatDoesNotFitTheModelIsToldAtOnce() throws IOException {
        Path prepared = folder.resolve("pairs.safetensors");
        new LabelledFile(
                        List.of("yes", "no"),
                        List.of(PairEncoder.of(BYTES).encode(List.of("abcdefgh"), 1, 12)))
                .write(prepared);

        assertThatThrownBy(
                        () ->
                                LabelledTexts.open(
                                        new DataSpec(
                                                prepared,
                                                DataFormat.TOKENS,
                                                "text",
                                                BYTES,
                                                256,
                                                0,
                                                8,
                                                1,
                                                1,
                                                false,
                                                1,
                                                7),
                                        LABELS))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("model.labels: expected [yes, no]")
                .hasMessageContaining("model.context: expected at least the 10 tokens")
                .hasMessageContaining("set model.vocabulary = 258");
    }

    @Test
    void linesWithoutATextOrALabelAreToldByNumber() throws IOException {
        Path file = folder.resolve("broken.jsonl");
        Files.writeString(file, "{\"a\": \"x\", \"label\": \"yes\"}\n{\"b\": \"x\"}\nnot JSON\n");

        assertThatThrownBy(() -> new LabelledLines(List.of("a"), "label").read(file, true))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("broken.jsonl:2")
                .hasMessageContaining("the text member 'a'")
                .hasMessageContaining("the label 'label'")
                .hasMessageContaining("broken.jsonl:3");
    }

    /** Lines of two texts and a label each. */
    private Path lines(String... words) throws IOException {
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < words.length; i += 3) {
            lines.append(
                    "{\"a\": \"%s\", \"b\": \"%s\", \"label\": \"%s\"}\n"
                            .formatted(words[i], words[i + 1], words[i + 2]));
        }
        return Files.writeString(folder.resolve("lines.jsonl"), lines);
    }

    private static DataSpec spec(Path source, double heldOut, int context) {
        return spec(source, DataFormat.JSONL, heldOut, context);
    }

    private static DataSpec spec(Path source, DataFormat format, double heldOut, int context) {
        return new DataSpec(
                source, format, "a, b", BYTES, 258, heldOut, context, 1, 1, false, 1, 7);
    }
}
