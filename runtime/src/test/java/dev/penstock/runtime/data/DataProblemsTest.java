package dev.penstock.runtime.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Every way in which data can be wrong is said in one line, and all at once. */
class DataProblemsTest {
    @TempDir Path directory;

    @Test
    void aMissingFile() {
        Path none = directory.resolve("none.txt");

        assertThat(problems(Specs.of(none)))
                .containsExactly(
                        "data.source: expected an existing file, folder or glob, got "
                                + none
                                + ", which does not exist; check the path,"
                                + " which is relative to the configuration's folder");
    }

    @Test
    void anEmptyFolderAndAnEmptyGlob() {
        assertThat(problems(Specs.of(directory)))
                .singleElement()
                .asString()
                .contains("a folder with at least one file");
        assertThat(problems(Specs.of(directory.resolve("no/such/*.txt"))))
                .singleElement()
                .asString()
                .contains("a glob that matches at least one file");
    }

    @Test
    void aTextShorterThanASequence() throws Exception {
        Path text = Files.writeString(directory.resolve("short.txt"), "12345678");

        assertThat(problems(Specs.of(text)))
                .containsExactly(
                        "data.source: expected at least 9 tokens to train on (model.context + 1),"
                                + " got %s with only 7; use more text or a smaller model.context"
                                        .formatted(text),
                        "data.validation-fraction: expected at least 9 tokens held out"
                                + " (model.context + 1), got 1 of 8; use a larger fraction or more"
                                + " text, or 0 to hold out none");
    }

    @Test
    void linesWithoutTheFieldAndLinesThatAreNotJson() throws Exception {
        Path lines = directory.resolve("a.jsonl");
        Files.write(
                lines,
                "{\"text\":\"ok\"}\n{\"body\":\"x\"}\n\nnot json\n{\"text\":7}\n\u0000"
                        .getBytes(StandardCharsets.UTF_8));
        byte[] latin = "{\"text\":\"é\"}".getBytes(StandardCharsets.ISO_8859_1);
        Files.write(directory.resolve("b.jsonl"), latin);

        List<String> problems = problems(Specs.of(directory).format(DataFormat.JSONL));

        assertThat(problems).hasSize(5);
        assertThat(problems.get(0)).contains("data.field", "a.jsonl:2", "'text' is missing");
        assertThat(problems.get(1)).contains("data.format", "a.jsonl:4");
        assertThat(problems.get(2)).contains("data.field", "a.jsonl:5", "of type number");
        assertThat(problems.get(3)).contains("data.format", "a.jsonl:6");
        assertThat(problems.get(4)).contains("data.format", "b.jsonl:1", "not UTF-8");
    }

    @Test
    void aTextThatIsNotUtf8ForGpt2ButGoodForBytes() throws Exception {
        byte[] latin = "Grüße ".repeat(30).getBytes(StandardCharsets.ISO_8859_1);
        Specs specs = Specs.of(Files.write(directory.resolve("latin.txt"), latin));

        assertThat(TrainingData.open(specs.spec()).trainingTokens()).isEqualTo(144);
        assertThat(problems(specs.tokenizer("gpt2")))
                .singleElement()
                .asString()
                .contains("data.tokenizer", "latin.txt", "byte 2 is not UTF-8");
    }

    @Test
    void aDamagedArchiveBesideAFileThatCannotBeRead() throws Exception {
        Files.write(directory.resolve("a.gz"), new byte[] {0x1f, (byte) 0x8b, 8, 0});
        Files.writeString(directory.resolve("b.gz"), "not an archive");

        List<String> problems = problems(Specs.of(directory));

        assertThat(problems).hasSize(2);
        assertThat(problems.get(0)).contains("data.source", "a.gz");
        assertThat(problems.get(1)).contains("data.source", "b.gz", "Not in GZIP format");
    }

    @Test
    void anArchiveThatHoldsMoreThanTextCan() throws Exception {
        Path bomb = directory.resolve("zeros.gz");
        try (var out = new GZIPOutputStream(Files.newOutputStream(bomb))) {
            out.write(new byte[20 << 20]);
        }

        assertThat(problems(Specs.of(bomb)))
                .singleElement()
                .asString()
                .contains("data.source", "zeros.gz", "more than 100 times its size");
    }

    @Test
    void aLineThatIsTooLongToBeADocument() throws Exception {
        Path lines = directory.resolve("a.jsonl");
        byte[] part = new byte[1 << 20];
        Arrays.fill(part, (byte) 'x');
        try (OutputStream out = Files.newOutputStream(lines)) {
            for (int mebibyte = 0; mebibyte < 65; mebibyte++) {
                out.write(part);
            }
            out.write("\nnot json\n".getBytes(StandardCharsets.UTF_8));
        }

        List<String> problems = problems(Specs.of(lines).format(DataFormat.JSONL));

        assertThat(problems).hasSize(2);
        assertThat(problems.get(0)).contains("data.format", "at most 64 MiB", "a.jsonl:1");
        assertThat(problems.get(1)).contains("a.jsonl:2");
    }

    @Test
    void aModelWithFewerRowsThanTheTokenizerHasTokens() throws Exception {
        byte[] text = new byte[200];
        Arrays.fill(text, (byte) 'x');
        Path path = Files.write(directory.resolve("x.txt"), text);

        assertThat(problems(Specs.of(path).shape(128, 8, 4, 5)))
                .singleElement()
                .asString()
                .contains("model.vocabulary", "at least 256", "got 128");
    }

    private static List<String> problems(Specs specs) {
        DataException e = assertThrows(DataException.class, () -> TrainingData.open(specs.spec()));
        return e.problems().stream().map(DataProblem::toString).toList();
    }
}
