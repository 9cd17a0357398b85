package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TokenizerOfARunTest {
    @TempDir private Path folder;

    private Path tokenizer() throws IOException {
        Path copy = Files.createDirectories(folder.resolve("words"));
        for (String file : new String[] {"vocab.json", "merges.txt"}) {
            try {
                var url = TokenizerOfARunTest.class.getResource("/tokenizers/pair/" + file);
                Files.copy(Path.of(Objects.requireNonNull(url).toURI()), copy.resolve(file));
            } catch (URISyntaxException e) {
                throw new IllegalStateException(e);
            }
        }
        return copy;
    }

    @Test
    void aRunTrainsAndGeneratesWithTheFilesThatItsConfigurationNames() throws IOException {
        Path words = tokenizer();
        Training training = Training.onText(folder).set("data.tokenizer=" + words, "run.steps=3");
        Trained trained = training.complete();
        assertThat(trained.out() + trained.err()).contains(words.toString());

        Cli generate =
                Cli.run(
                        "generate",
                        training.directory().toString(),
                        "--prompt=the valve",
                        "--tokens=12",
                        "--temperature=0",
                        "--json");

        JsonNode answer = JsonMapper.builder().build().readTree(generate.out());
        int[] tokens =
                StreamSupport.stream(answer.get("tokens").spliterator(), false)
                        .mapToInt(JsonNode::asInt)
                        .toArray();
        assertThat(IntStream.of(tokens)).anyMatch(token -> token > 255);
        assertThat(answer.get("text").asText())
                .isEqualTo(Tokenizer.open(words.toString()).decode(tokens));
    }

    @Test
    void weightsBringTheTokenizerThatIsBesideThem() throws IOException {
        Path words = tokenizer();
        Training training = Training.onText(folder).set("data.tokenizer=" + words, "run.steps=2");
        training.complete();
        String run = training.directory().toString();
        Path weights = folder.resolve("gpt/model.safetensors");
        Cli export = Cli.run("checkpoint", "export", run, "--output", weights.toString());
        String[] ask = {"generate", run, "--prompt=the valve", "--tokens=9", "--seed=1"};

        Cli ofRun = Cli.run(ask);
        ask[1] = weights.toString();
        Cli ofWeights = Cli.run(ask);

        assertThat(export.exitCode()).as(export.err()).isEqualTo(ExitCode.OK);
        for (String file : new String[] {"vocab.json", "merges.txt"}) {
            assertThat(weights.resolveSibling(file)).hasSameBinaryContentAs(words.resolve(file));
        }
        assertThat(ofWeights.exitCode()).as(ofWeights.err()).isEqualTo(ExitCode.OK);
        assertThat(ofWeights.out()).isEqualTo(ofRun.out());
    }

    @Test
    void aRunGoesOnOnlyWithTheTokenizerThatItHad() throws IOException {
        Training training =
                Training.onText(folder).set("data.tokenizer=" + tokenizer(), "run.steps=2");
        training.complete();

        Trained other = training.copy().resume().set("data.tokenizer=bytes", "run.steps=3").run();
        Files.move(folder.resolve("words"), folder.resolve("away"));
        Cli generate = Cli.run("generate", training.directory().toString(), "--prompt=x");

        assertThat(other.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(other.err()).contains("data.tokenizer", "words", "bytes");
        assertThat(generate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(generate.err()).contains("data.tokenizer is not where it was", "--tokenizer");
    }

    /** Files count, not where they are. */
    @Test
    void aRunGoesOnWithItsTokenizerAtAnotherPlace() throws IOException {
        Path words = tokenizer();
        Training training =
                Training.onText(folder)
                        .set("data.tokenizer=" + words, "run.steps=2", "checkpoint.every=1");
        training.complete();
        Path away = Files.move(words, folder.resolve("away"));
        Training moved = training.copy().resume().set("data.tokenizer=" + away, "run.steps=3");

        Trained ended = moved.complete();
        Files.writeString(away.resolve("merges.txt"), "#version: 0.2\nt h\n");
        Trained changed = moved.copy().set("run.steps=4").run();

        assertThat(ended.losses()).hasSize(3);
        assertThat(changed.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(changed.err()).contains("data.tokenizer", "away, whose files have changed");
    }

    /** Of an earlier Penstock, which left no fingerprint: its files tell, as long as they exist. */
    @Test
    void aRunWithoutAFingerprintGoesOnWithACopyOfItsTokenizer() throws IOException {
        Path words = tokenizer();
        Training training =
                Training.onText(folder)
                        .set("data.tokenizer=" + words, "run.steps=1", "checkpoint.every=1");
        training.complete();
        Files.delete(training.directory().resolve("tokenizer.sha256"));
        Path copy = Files.createDirectory(folder.resolve("copy"));
        for (String file : new String[] {"vocab.json", "merges.txt"}) {
            Files.copy(words.resolve(file), copy.resolve(file));
        }

        Training copied = training.copy().resume().set("data.tokenizer=" + copy, "run.steps=2");

        assertThat(copied.complete().losses()).hasSize(2);
    }

    @Test
    void tokensThatTheModelHasNoRowsForAreRefused() throws IOException {
        Trained run =
                Training.onText(folder)
                        .set("data.tokenizer=" + tokenizer(), "model.vocabulary=512")
                        .run();

        assertThat(run.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(run.err())
                .contains("model.vocabulary: expected at least the 700 tokens of data.tokenizer")
                .contains("got 512", "try model.vocabulary = tokenizer");
        assertThat(folder.resolve("run")).doesNotExist();
    }

    @Test
    void tornFilesAreNamedAtTheKeyBesideOtherProblems() throws IOException {
        Path words = tokenizer();
        Files.writeString(words.resolve("merges.txt"), "t h\nt he and");

        Trained torn = Training.onText(folder).set("data.tokenizer=" + words).run();
        Files.writeString(words.resolve("vocab.json"), "{\"a\":");
        Trained worse =
                Training.onText(folder).set("data.tokenizer=" + words, "model.width=31").run();
        Trained none = Training.onText(folder).set("data.tokenizer=bytse").run();

        assertThat(torn.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(torn.err()).contains("data.tokenizer", "merges.txt", "line 2", "torn");
        assertThat(worse.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(worse.err()).contains("2 problems", "vocab.json", "model.width");
        assertThat(none.err()).contains("data.tokenizer", "did you mean bytes?");
    }
}
