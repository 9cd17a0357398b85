package dev.penstock.runtime.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.data.rows.Arrangement;
import dev.penstock.runtime.data.rows.RowsApart;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** One document in a row. */
class DocumentCorpusTest {
    private static final int CONTEXT = 24;
    private static final int ROW = CONTEXT + 1;
    private static final Marking DOCUMENTS = new Marking(true, false, Optional.empty());

    /** Lengths differ, and none is longer than a row. */
    private static final List<String> TEXTS =
            IntStream.range(0, 40).mapToObj(i -> "%02d".formatted(i) + "x".repeat(i % 17)).toList();

    @TempDir Path folder;

    private static RowsApart apart(boolean padded) {
        return new RowsApart(padded, 4, 1, tokens -> Arrangement.hill(tokens.length));
    }

    private DataSpec spec(double heldOut) throws IOException {
        Path lines = folder.resolve("lines.jsonl");
        StringBuilder written = new StringBuilder();
        TEXTS.forEach(text -> written.append("{\"text\": \"%s\"}\n".formatted(text)));
        Files.writeString(lines, written);
        return Specs.of(lines)
                .format(DataFormat.JSONL)
                .validationFraction(heldOut)
                .shape(256, CONTEXT, 4, 20)
                .spec()
                .marking(DOCUMENTS);
    }

    /** A row: what is trained on of it, as text. */
    private static List<String> texts(TrainingData data, StepKind kind, long step) {
        List<String> texts = new ArrayList<>();
        for (int m = 0; m < 2; m++) {
            int[] tokens = new int[2 * ROW];
            byte[] marks = new byte[2 * ROW];
            data.read(kind, step, m, tokens);
            data.marks(kind, step, m, marks);
            int length = data.tokens(kind, step, m, CONTEXT);
            for (int row = 0; row < 2; row++) {
                StringBuilder text = new StringBuilder().append((char) tokens[row * ROW]);
                for (int t = 1; t < ROW; t++) {
                    if (data.counts(marks[row * ROW + t])) {
                        assertThat(t).isLessThanOrEqualTo(length);
                        text.append((char) tokens[row * ROW + t]);
                    }
                }
                texts.add(text.toString().strip());
            }
        }
        return texts;
    }

    @Test
    void anEpochHasEveryDocumentOnceInRowsOfItsOwn() throws IOException {
        for (boolean padded : new boolean[] {false, true}) {
            TrainingData data = TrainingData.open(spec(0).apart(apart(padded)));
            List<String> first = new ArrayList<>();
            for (long step = 1; step <= data.stepsOfEpoch(); step++) {
                first.addAll(texts(data, StepKind.TRAIN, step));
            }

            assertThat(data.stepsOfEpoch()).isEqualTo(10);
            assertThat(first).containsExactlyInAnyOrderElementsOf(TEXTS);
            assertThat(data.unequal()).isNotEqualTo(padded);
        }
    }

    @Test
    void stepsHaveTheSameDocumentsWhateverTheirLengths() throws IOException {
        TrainingData padded = TrainingData.open(spec(0).apart(apart(true)));
        TrainingData unequal = TrainingData.open(spec(0).apart(apart(false)));

        long tokens = 0;
        for (long step = 1; step <= 30; step++) {
            assertThat(texts(unequal, StepKind.TRAIN, step))
                    .containsExactlyInAnyOrderElementsOf(texts(padded, StepKind.TRAIN, step));
            for (int m = 0; m < 2; m++) {
                assertThat(padded.tokens(StepKind.TRAIN, step, m, CONTEXT)).isEqualTo(CONTEXT);
                tokens += unequal.tokens(StepKind.TRAIN, step, m, CONTEXT);
            }
        }
        assertThat(tokens).isLessThan(30L * 2 * CONTEXT * 3 / 4);
    }

    @Test
    void whatIsHeldOutIsNotTrainedOn() throws IOException {
        TrainingData data = TrainingData.open(spec(0.3).apart(apart(false)));
        List<String> trained = new ArrayList<>();
        for (long step = 1; step <= 2 * data.stepsOfEpoch(); step++) {
            trained.addAll(texts(data, StepKind.TRAIN, step));
        }
        List<String> held = new ArrayList<>();
        for (long batch = 0; batch < 6; batch++) {
            held.addAll(texts(data, StepKind.EVALUATE, batch));
        }

        assertThat(data.hasHeldOut()).isTrue();
        assertThat(held.stream().filter(text -> text.length() > 1 && trained.contains(text)))
                .isEmpty();
        assertThat(held).contains(TEXTS.getLast());
        assertThat(data.heldOutTargets(4)).isEqualTo(targets(data));
        assertThat(data.heldOutBytes(4)).isLessThanOrEqualTo(data.heldOutTargets(4));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void everyRowThatIsHeldOutIsReadOnce(boolean padded) throws IOException {
        TrainingData data = TrainingData.open(spec(0.29).apart(apart(padded)));
        List<String> held = new ArrayList<>();
        for (int batch = 0; batch < data.heldOutBatches(); batch++) {
            held.addAll(texts(data, StepKind.EVALUATE, batch));
        }
        held.removeIf(text -> text.chars().allMatch(c -> c == 0)); // places of rows not there

        int rows = held.size();
        assertThat(rows % 4).isNotZero();
        assertThat(data.heldOutBatches()).isEqualTo(Math.ceilDiv(rows, 4));
        assertThat(data.heldOutRows(data.heldOutBatches())).isEqualTo(rows);
        assertThat(data.heldOutRows(1)).isEqualTo(4);
        assertThat(held).doesNotHaveDuplicates();
        assertThat(data.heldOutTargets(1000)).isEqualTo(data.heldOutTargets(rows));
        assertThat(data.heldOutBytes(1000)).isEqualTo(data.heldOutBytes(rows));
    }

    private static long targets(TrainingData data) {
        long count = 0;
        byte[] marks = new byte[2 * ROW];
        for (int m = 0; m < 2; m++) {
            data.marks(StepKind.EVALUATE, 0, m, marks);
            for (int i = 0; i < marks.length; i++) {
                count += i % ROW > 0 && data.counts(marks[i]) ? 1 : 0;
            }
        }
        return count;
    }

    @Test
    void ofChatsOnlyTheAnswersCount() throws IOException {
        Path lines = folder.resolve("chats.jsonl");
        StringBuilder written = new StringBuilder();
        for (int i = 0; i < 8; i++) {
            written.append(
                    "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}, {\"role\": \"assistant\", \"content\": \"%s\"}]}\n"
                            .formatted("u".repeat(1 + i), "A".repeat(8 - i)));
        }
        Files.writeString(lines, written);
        DataSpec spec =
                Specs.of(lines)
                        .format(DataFormat.CHAT)
                        .validationFraction(0)
                        .shape(256, 64, 4, 2)
                        .spec()
                        .marking(
                                new Marking(
                                        true, true, Optional.of(ChatTemplate.of("plain", null))));
        TrainingData data = TrainingData.open(spec.apart(apart(false)));

        int answers = 0;
        for (long step = 1; step <= 2; step++) {
            for (int m = 0; m < 2; m++) {
                int[] tokens = new int[2 * 65];
                byte[] marks = new byte[2 * 65];
                data.read(StepKind.TRAIN, step, m, tokens);
                data.marks(StepKind.TRAIN, step, m, marks);
                for (int i = 0; i < tokens.length; i++) {
                    if (i % 65 > 0 && data.counts(marks[i])) {
                        assertThat((char) tokens[i]).isIn('A', '\n');
                        answers += tokens[i] == 'A' ? 1 : 0;
                    }
                }
            }
        }
        assertThat(answers).isEqualTo(36);
        assertThat(data.counted().orElseThrow().silentRows()).isZero();
        assertThat(data.counted().orElseThrow().targets())
                .isEqualTo(36 + 8 + 7); // ends of answers and of chats
        assertThat(data.description()).contains("8 rows of one document to train on, 0 held out");
    }

    @Test
    void preparedTokensHaveTheSameRowsAsTheirText() throws IOException {
        Tokenizer gpt2 = Tokenizer.open("gpt2");
        Path lines = spec(0).source();
        Path prepared = folder.resolve("tokens");
        Corpus corpus = Corpus.find(List.of(lines), Optional.empty(), "text");
        new DataPreparation(corpus, gpt2, prepared, 1 << 10).prepare(1, _ -> {});
        DataSpec text = Specs.of(lines).format(DataFormat.JSONL).tokenizer("gpt2").spec();
        DataSpec tokens = Specs.of(prepared).format(DataFormat.TOKENS).tokenizer("gpt2").spec();

        TrainingData ofText = TrainingData.open(text.marking(DOCUMENTS).apart(apart(false)));
        TrainingData ofTokens = TrainingData.open(tokens.marking(DOCUMENTS).apart(apart(false)));

        int[] read = new int[2 * (text.context() + 1)];
        int[] expected = new int[read.length];
        for (long step = 1; step <= 10; step++) {
            ofText.read(StepKind.TRAIN, step, 1, expected);
            ofTokens.read(StepKind.TRAIN, step, 1, read);
            assertThat(read).isEqualTo(expected);
        }
    }

    @Test
    void rowsThatAFileGivesAreRefused() {
        Path file = Path.of("src/test/resources/golden-models/packed-gpt2/tokens.safetensors");
        DataSpec spec = Specs.of(file).format(DataFormat.TOKENS).shape(64, 16, 4, 12).spec();

        assertThatThrownBy(() -> TrainingData.open(spec.marking(DOCUMENTS).apart(apart(false))))
                .hasMessageContaining("data.packing: expected none or documents");
    }

    @Test
    void textWithoutDocumentsToHoldOutIsRefused() throws IOException {
        DataSpec spec = spec(0.001);

        assertThatThrownBy(() -> TrainingData.open(spec.apart(apart(false))))
                .hasMessageContaining("data.validation-fraction: expected documents of two tokens");
    }
}
