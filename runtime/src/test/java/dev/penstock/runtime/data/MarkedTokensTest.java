package dev.penstock.runtime.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where documents begin, and which tokens count. */
class MarkedTokensTest {
    private static final Path PACKED =
            Path.of("src/test/resources/golden-models/packed-gpt2/tokens.safetensors");
    private static final Marking DOCUMENTS = new Marking(true, false, Optional.empty());

    @TempDir Path folder;

    private final DataSpec packed =
            Specs.of(PACKED).format(DataFormat.TOKENS).shape(64, 16, 4, 12).spec();

    @Test
    void aFileOfTokensMarksBordersByPositionsAndWhatCountsByTargets() {
        TrainingData data = TrainingData.open(packed.marking(DOCUMENTS));

        assertThat(data.packed()).isTrue();
        try (SafetensorsFile file = SafetensorsFile.open(PACKED)) {
            StoredTensor positions = file.tensor("positions");
            StoredTensor targets = file.tensor("targets");
            byte[] marks = new byte[2 * 17];
            for (int step = 1; step <= 12; step++) {
                for (int microBatch = 0; microBatch < 2; microBatch++) {
                    data.marks(StepKind.TRAIN, step, microBatch, marks);
                    for (int i = 0; i < marks.length; i++) {
                        long row = ((step - 1) * 2L + microBatch) * 2 + i / 17;
                        int t = i % 17;
                        if (t < 16) {
                            assertThat((marks[i] & BatchSource.BEGINS) != 0)
                                    .isEqualTo(positions.integer(row * 16 + t) == 0);
                        }
                        if (t > 0) {
                            assertThat(data.counts(marks[i]))
                                    .isEqualTo(targets.integer(row * 16 + t - 1) >= 0);
                        }
                    }
                }
            }
        }
    }

    @Test
    void aFileOfTokensIsReadAsEverUnlessMoreIsAsked() {
        TrainingData data = TrainingData.open(packed);
        byte[] marks = new byte[2 * 17];
        data.marks(StepKind.TRAIN, 1, 0, marks);

        assertThat(data.packed()).isFalse();
        assertThat(data.masked()).isFalse();
        assertThat(marks).containsOnly(0);
    }

    @Test
    void aFileWithoutPositionsOrTargetsIsRefusedWhereTheyAreNeeded() {
        Path plain = Path.of("src/test/resources/golden/tokens.safetensors");
        DataSpec spec = Specs.of(plain).format(DataFormat.TOKENS).shape(64, 16, 4, 20).spec();

        assertThatThrownBy(
                        () ->
                                TrainingData.open(
                                        spec.marking(new Marking(true, true, Optional.empty()))))
                .hasMessageContaining("data.packing: expected a file with positions as I64")
                .hasMessageContaining("data.loss: expected a file with targets as I64");
    }

    /** Three documents of 30 letters, each a line; a newline is also what ends one. */
    @Test
    void documentsOfTextBeginAfterTheTokenThatEndsTheOneBefore() throws IOException {
        Path lines = folder.resolve("lines.jsonl");
        String text = "abcdefghi\\nklmnopqrstuvwxyz1234";
        Files.writeString(lines, ("{\"text\": \"" + text + "\"}\n").repeat(3));
        Specs specs = Specs.of(lines).format(DataFormat.JSONL).validationFraction(0);

        TrainingData data = TrainingData.open(specs.spec().marking(DOCUMENTS));

        int row = specs.spec().context() + 1;
        int[] tokens = new int[2 * row];
        byte[] marks = new byte[2 * row];
        int begun = 0;
        for (int step = 1; step <= 20; step++) {
            data.read(StepKind.TRAIN, step, 0, tokens);
            data.marks(StepKind.TRAIN, step, 0, marks);
            for (int i = 0; i < marks.length; i++) {
                assertThat(marks[i]).isEqualTo(tokens[i] == 'a' ? BatchSource.BEGINS : 0);
                begun += marks[i];
            }
        }
        assertThat(begun).isPositive();
    }

    @Test
    void preparedDocumentsBeginAfterTheTokenThatEndsATextIfThereIsOne() throws IOException {
        Path lines = folder.resolve("lines.jsonl");
        Files.writeString(lines, "{\"text\": \"to be or not to be\"}\n".repeat(40));
        Tokenizer gpt2 = Tokenizer.open("gpt2");
        Path prepared = prepare(lines, gpt2, "gpt2-tokens");
        DataSpec spec = Specs.of(prepared).format(DataFormat.TOKENS).tokenizer("gpt2").spec();

        TrainingData data = TrainingData.open(spec.marking(DOCUMENTS));
        TrainingData ofText =
                TrainingData.open(
                        Specs.of(lines)
                                .format(DataFormat.JSONL)
                                .tokenizer("gpt2")
                                .spec()
                                .marking(DOCUMENTS));

        byte[] marks = new byte[2 * (spec.context() + 1)];
        byte[] expected = new byte[marks.length];
        for (int step = 1; step <= 10; step++) {
            data.marks(StepKind.TRAIN, step, 1, marks);
            ofText.marks(StepKind.TRAIN, step, 1, expected);
            assertThat(marks).isEqualTo(expected).contains(BatchSource.BEGINS);
        }
        Path bytes = prepare(lines, Tokenizer.open("bytes"), "byte-tokens");
        DataSpec ofBytes = Specs.of(bytes).format(DataFormat.TOKENS).spec();
        assertThatThrownBy(() -> TrainingData.open(ofBytes.marking(DOCUMENTS)))
                .hasMessageContaining("data.packing: expected tokens whose documents end");
    }

    /** Ten chats, each a document; what the assistant says is in capitals. */
    @Test
    void ofChatsTheAnswersCountAndNothingElse() throws IOException {
        Path lines = folder.resolve("chats.jsonl");
        Files.writeString(
                lines,
                """
                {"messages": [{"role": "user", "content": "say it"}, \
                {"role": "assistant", "content": "IT"}, \
                {"role": "user", "content": "again"}, \
                {"role": "assistant", "content": "IT IS SAID"}]}
                """
                        .repeat(10));
        DataSpec spec = Specs.of(lines).format(DataFormat.CHAT).validationFraction(0.2).spec();
        Optional<ChatTemplate> plain = Optional.of(ChatTemplate.of("plain", null));

        TrainingData data = TrainingData.open(spec.marking(new Marking(true, true, plain)));
        TrainingData all = TrainingData.open(spec.marking(new Marking(true, false, plain)));

        int row = spec.context() + 1;
        int[] tokens = new int[2 * row];
        byte[] marks = new byte[2 * row];
        StringBuilder answers = new StringBuilder();
        StringBuilder rest = new StringBuilder();
        StringBuilder begun = new StringBuilder();
        for (int step = 1; step <= 40; step++) {
            data.read(StepKind.TRAIN, step, 1, tokens);
            data.marks(StepKind.TRAIN, step, 1, marks);
            for (int i = 0; i < marks.length; i++) {
                boolean answer = (marks[i] & BatchSource.UNCOUNTED) == 0;
                (answer ? answers : rest).append((char) tokens[i]);
                if ((marks[i] & BatchSource.BEGINS) != 0) {
                    begun.append((char) tokens[i]);
                }
            }
            all.marks(StepKind.TRAIN, step, 1, marks);
            for (byte mark : marks) {
                assertThat(mark & BatchSource.UNCOUNTED).isZero();
            }
        }
        assertThat(answers.toString()).contains("SAID\n").matches("[A-Z \n]*");
        assertThat(begun.toString()).matches("u+");
        assertThat(rest.toString()).contains("say it").matches("[a-z: \n]*");
        assertThat(data.heldOutTargets(2)).isBetween(1L, all.heldOutTargets(2) - 1);
        assertThat(data.heldOutBytes(2)).isLessThan(all.heldOutBytes(2));
    }

    @Test
    void linesThatAreNoChatsAreRefusedWithTheirNumbers() throws IOException {
        Path lines = folder.resolve("chats.jsonl");
        Files.writeString(
                lines,
                """
                {"text": "to be"}
                {"messages": [{"role": "user"}]}
                {"messages": [{"role": "user", "content": "ok"}]}
                """);
        var marking = new Marking(false, true, Optional.of(ChatTemplate.of("chatml", null)));
        DataSpec spec = Specs.of(lines).format(DataFormat.CHAT).spec().marking(marking);

        assertThatThrownBy(() -> TrainingData.open(spec))
                .hasMessageContaining("chats.jsonl:1, which has no 'messages'")
                .hasMessageContaining("chats.jsonl:2, which has a message without the texts");
    }

    @Test
    void linesThatAreNoJsonAreToldInPlainWords() throws IOException {
        Path lines = folder.resolve("chats.jsonl");
        Files.writeString(
                lines, "{\"messages\": [\n" + "[".repeat(2_000) + "\nnot\n{\"messages\": \"x\n");
        DataSpec spec = Specs.of(lines).format(DataFormat.CHAT).spec().marking(answersOf("plain"));

        assertThatThrownBy(() -> TrainingData.open(spec))
                .hasMessageContaining(
                        "chats.jsonl:1: it ends too early (column 15); repair the line")
                .hasMessageContaining("chats.jsonl:2: nested too deep; repair")
                .hasMessageContaining("chats.jsonl:3: Unrecognized token 'not'")
                .hasMessageContaining("chats.jsonl:4: it ends too early")
                .message()
                .doesNotContain("Source", "Stream", "data.format = text");
    }

    @Test
    void aMarkOfTheByteOrderIsPassedOverAndContentMayHaveParts() throws IOException {
        Path plain = folder.resolve("plain.jsonl");
        Path marked = folder.resolve("marked.jsonl");
        String chat =
                "{\"messages\": [{\"role\": \"user\", \"content\": \"say it\"},"
                        + " {\"role\": \"assistant\", \"content\": \"it is said\"}]}\n";
        String parts =
                chat.replace(
                        "\"say it\"",
                        "[{\"type\": \"text\", \"text\": \"say \"}, {\"type\": \"text\", \"text\": \"it\"}]");
        Files.writeString(plain, chat.repeat(4));
        Files.writeString(marked, "\uFEFF" + parts.repeat(4));

        int[][] tokens = new int[2][2 * 9];
        for (int i = 0; i < 2; i++) {
            Path file = i == 0 ? plain : marked;
            Specs specs = Specs.of(file).format(DataFormat.CHAT).validationFraction(0);
            TrainingData data = TrainingData.open(specs.spec().marking(answersOf("plain")));
            assertThat(data.trainingTokens()).isEqualTo(4 * (13 + 22) + 3);
            data.read(StepKind.TRAIN, 1, 0, tokens[i]);
        }
        assertThat(tokens[1]).isEqualTo(tokens[0]);
    }

    private static Marking answersOf(String template) {
        return new Marking(false, true, Optional.of(ChatTemplate.of(template, null)));
    }

    @Test
    void rolesThatNobodyKnowsAreRefusedWithTheirLines() throws IOException {
        Path lines = folder.resolve("chats.jsonl");
        Files.writeString(
                lines,
                """
                {"messages": [{"role": "user", "content": "a"}, {"role": "assistent", "content": "b"}]}
                {"messages": [{"role": "User", "content": "a"}, {"role": "assistant", "content": "b"}]}
                {"messages": [{"role": "gpt", "content": "a"}, {"role": "tool", "content": "b"}]}
                """);
        for (String name : ChatTemplate.names()) {
            var marking = new Marking(false, true, Optional.of(ChatTemplate.of(name, null)));
            DataSpec spec = Specs.of(lines).format(DataFormat.CHAT).spec().marking(marking);

            assertThatThrownBy(() -> TrainingData.open(spec))
                    .hasMessageContaining(
                            "chats.jsonl:1, which has the role 'assistent'; did you mean assistant?")
                    .hasMessageContaining(
                            "chats.jsonl:2, which has the role 'User'; did you mean user?")
                    .hasMessageContaining("chats.jsonl:3, which has the role 'gpt'; repair");
        }
    }

    /** Rows of 8 tokens; a question has 40, an answer 3. */
    @Test
    void itIsToldHowManyTargetsCount() throws IOException {
        Path lines = folder.resolve("chats.jsonl");
        String question =
                "{\"messages\": [{\"role\": \"user\", \"content\": \"" + "q".repeat(33) + "\"}";
        String answer = ", {\"role\": \"assistant\", \"content\": \"no\"}";
        Files.writeString(
                lines, (question + answer + "]}\n").repeat(6) + (question + "]}\n").repeat(3));
        var plain = Optional.of(ChatTemplate.of("plain", null));
        Specs specs = Specs.of(lines).format(DataFormat.CHAT).validationFraction(0);

        TrainingData data = TrainingData.open(specs.spec().marking(new Marking(true, true, plain)));
        TrainingData all = TrainingData.open(specs.spec().marking(new Marking(true, false, plain)));

        // of an answer its end counts, and the token that separates it from the next chat
        String counting = (".".repeat(51) + "xxxx").repeat(6) + ".".repeat(3 * 41 - 1);
        int rows = (counting.length() - 1) / 8;
        long silent =
                IntStream.range(0, rows)
                        .filter(r -> !counting.substring(r * 8 + 1).matches("\\.{0,7}x.*"))
                        .count();
        assertThat(data.counted()).contains(new CountedTargets(9, 3, 24, rows, silent, true));
        assertThat(data.description()).endsWith("; 9 chats, 24 answer tokens to train on count");
        assertThat(all.counted()).isEmpty();
        assertThat(all.description()).endsWith("; 9 chats");
    }

    private Path prepare(Path lines, Tokenizer tokenizer, String name) throws IOException {
        Path prepared = folder.resolve(name);
        Corpus corpus = Corpus.find(List.of(lines), Optional.empty(), "text");
        new DataPreparation(corpus, tokenizer, prepared, 1 << 10).prepare(1, _ -> {});
        return prepared;
    }
}
