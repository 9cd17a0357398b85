package dev.penstock.runtime.cli.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.disk.SmallDisk;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TokenizerCommandTest {
    @TempDir private Path folder;

    private Cli train(String output, String... more) {
        String[] arguments = {
            "tokenizer", "train", "--output", folder.resolve(output).toString(),
        };
        String[] all = java.util.Arrays.copyOf(arguments, arguments.length + more.length);
        System.arraycopy(more, 0, all, arguments.length, more.length);
        return Cli.run(all);
    }

    @Test
    void learnsATokenizerThatARunUses() throws IOException {
        String text = Training.text(20_000);
        Path file = Files.writeString(folder.resolve("t.txt"), text);

        Cli cli = train("words", "--vocabulary=300", file.toString(), "--json");

        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        JsonNode answer = new ObjectMapper().readTree(cli.out());
        assertThat(answer.get("vocabulary").asInt()).isEqualTo(300);
        Tokenizer words = Tokenizer.open(folder.resolve("words").toString());
        assertThat(words.vocabulary()).isEqualTo(300);
        assertThat(words.encode(" turbine valve")).hasSizeLessThan(5);
        assertThat(
                        Training.onText(folder.resolve("run"))
                                .set("run.steps=2", "data.tokenizer=" + folder.resolve("words"))
                                .complete()
                                .losses())
                .hasSizeLessThan(5);
    }

    /** As a kill leaves it: the files that decide come last. */
    @Test
    void aTrainingThatWasKilledIsDoneAgainWithoutForce() throws IOException {
        Path file = Files.writeString(folder.resolve("t.txt"), Training.text(9_000));
        train("words", "--vocabulary=300", file.toString());
        Path words = folder.resolve("words");
        Path json = words.resolve("tokenizer.json");
        byte[] whole = Files.readAllBytes(json);
        Path aside = words.resolve("tokenizer.json.incomplete");
        Files.writeString(aside, "{");

        Cli beforeAnything = train("words", "--vocabulary=300", file.toString());
        Files.delete(json);
        Cli again = train("words", "--vocabulary=300", file.toString());

        assertThat(beforeAnything.err()).contains("--force to replace");
        assertThat(again.exitCode()).as(again.err()).isEqualTo(ExitCode.OK);
        assertThat(json).hasBinaryContent(whole);
        assertThat(aside).doesNotExist();
    }

    @Test
    void manyThreadsAndManyFilesGiveTheSameFiles() throws IOException {
        Path texts = Files.createDirectories(folder.resolve("texts"));
        for (int i = 0; i < 20; i++) {
            Files.writeString(texts.resolve("t%02d.txt".formatted(i)), Training.text(500 * i));
        }

        train("one", "--vocabulary=400", texts.toString(), "--threads=1");
        train("many", "--vocabulary=400", texts.toString(), "--threads=7");

        for (String name : new String[] {"vocab.json", "merges.txt", "tokenizer.json"}) {
            assertThat(folder.resolve("many").resolve(name))
                    .hasSameBinaryContentAs(folder.resolve("one").resolve(name));
        }
    }

    @Test
    void aTextThatIsTooShortGivesFewerTokensAndSaysSo() throws IOException {
        Path file = Files.writeString(folder.resolve("t.txt"), "valve valve");

        Cli cli = train("words", "--vocabulary=5000", file.toString());

        assertThat(cli.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(cli.err()).contains("only 261 tokens");
        assertThat(cli.out()).contains("261 tokens of 2 different words");
    }

    /** It would be a tokenizer of single bytes. */
    @Test
    void filesWithoutTextAreRefused() throws IOException {
        Path file = Files.createFile(folder.resolve("t.txt"));

        Cli cli = train("words", "--vocabulary=300", file.toString());

        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.err().lines())
                .containsExactly(
                        "penstock: FILE: expected text in the files, got none; check the files");
        assertThat(folder.resolve("words")).doesNotExist();
    }

    @Test
    void badOptionsAndFilesThatAreThereAreRefused() throws IOException {
        Path file = Files.writeString(folder.resolve("t.txt"), "valve valve");
        train("words", "--vocabulary=300", file.toString());

        Cli cli = train("words", "--vocabulary=256", file.toString());
        Cli none = train("other", "--vocabulary=300", folder.resolve("no.txt").toString());
        Cli forced = train("words", "--vocabulary=258", file.toString(), "--force");

        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.err())
                .contains("2 problems", "--vocabulary: expected 257 to 1000000, got 256")
                .contains("--force to replace");
        assertThat(none.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(folder.resolve("other")).doesNotExist();
        assertThat(forced.exitCode()).as(forced.err()).isEqualTo(ExitCode.OK);
        assertThat(Tokenizer.vocabularyOf(folder.resolve("words").toString())).isEqualTo(258);
    }

    /** A folder that has the name of a file stops the command where the file would get it. */
    @ParameterizedTest
    @ValueSource(strings = {"vocab.json", "tokenizer_config.json", "merges.txt", "tokenizer.json"})
    void filesAreReplacedTogetherOrTheFolderHasNoTokenizerOfTwo(String name) throws IOException {
        Path file = Files.writeString(folder.resolve("t.txt"), "valve valve");
        train("words", "--vocabulary=300", file.toString());
        Path obstacle = folder.resolve("words").resolve(name);
        Files.delete(obstacle);
        Files.createDirectories(obstacle.resolve("in the way"));

        Cli cli = train("words", "--vocabulary=258", file.toString(), "--force");

        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.err()).contains("words: cannot write the tokenizer").doesNotContain("\tat ");
        assertThat(folder.resolve("words").toFile().list())
                .noneMatch(each -> each.endsWith(".incomplete"));
        Path vocabulary = folder.resolve("words/vocab.json");
        assertThat(Files.isRegularFile(folder.resolve("words/tokenizer.json"))).isFalse();
        if (Files.isRegularFile(vocabulary)
                && Files.isRegularFile(folder.resolve("words/merges.txt"))) {
            Tokenizer left = Tokenizer.open(vocabulary.toString());
            assertThat(left.encode(" valve")).hasSize(left.vocabulary() == 258 ? 5 : 2);
        }
    }

    @Test
    void aDiskThatIsFullLeavesTheTokenizerThatIsThere() throws Exception {
        Path file = Files.writeString(folder.resolve("t.txt"), Training.text(20_000));
        // eight entries: two folders, the four files that are there, and two of the new ones
        try (SmallDisk disk = SmallDisk.below(folder, "size=10m,nr_inodes=8")) {
            train("disk/words", "--vocabulary=260", file.toString());
            byte[] before = Files.readAllBytes(folder.resolve("disk/words/tokenizer.json"));

            Cli cli = train("disk/words", "--vocabulary=900", file.toString(), "--force");

            assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(cli.err().lines().filter(line -> line.startsWith("penstock:")))
                    .singleElement()
                    .asString()
                    .contains("words: cannot write the tokenizer", "No space left on device");
            assertThat(disk.path().resolve("words").toFile().list()).hasSize(4);
            assertThat(disk.path().resolve("words/tokenizer.json")).hasBinaryContent(before);
        }
    }
}
