package dev.penstock.runtime.cli.data;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DataCommandTest {
    @TempDir private Path folder;

    private Cli prepare(String tokenizer, String... more) {
        String[] arguments = {
            "data",
            "prepare",
            "--tokenizer",
            tokenizer,
            "--output",
            folder.resolve("tokens").toString(),
        };
        String[] all = java.util.Arrays.copyOf(arguments, arguments.length + more.length);
        System.arraycopy(more, 0, all, arguments.length, more.length);
        return Cli.run(all);
    }

    @Test
    void tokensWhosePreparationIsNotFinishedAreToldWithWhatFinishesIt() throws IOException {
        Path tokens = Files.createDirectory(folder.resolve("tokens"));
        Files.writeString(tokens.resolve("tokens-00000.bin.part"), "");

        Cli verify = Cli.run("data", "verify", tokens.toString());

        assertThat(verify.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(verify.err()).contains("prepared.json", "run the same penstock data prepare");
    }

    @Test
    void aRunOnPreparedTokensHasTheSameLossesAsOneOnTheText() throws IOException {
        Training onText = Training.onText(folder.resolve("a")).set("run.steps=6");
        Trained text = onText.complete();
        Path file = folder.resolve("a/text.txt");

        Cli prepared = prepare("bytes", file.toString(), "--shard-tokens=5000", "--json");
        Trained tokens =
                Training.onText(folder.resolve("b"))
                        .set(
                                "run.steps=6",
                                "data.source=" + folder.resolve("tokens"),
                                "data.format=tokens",
                                "report.sample=true")
                        .complete();

        assertThat(prepared.exitCode()).as(prepared.err()).isEqualTo(ExitCode.OK);
        JsonNode answer = new ObjectMapper().readTree(prepared.out());
        assertThat(answer.get("tokens").asLong()).isEqualTo(Files.size(file));
        assertThat(answer.get("shards").asInt()).isGreaterThan(3);
        assertThat(tokens.lossBits()).isEqualTo(text.lossBits());
        assertThat(tokens.validationBits()).isNotEmpty().isEqualTo(text.validationBits());
    }

    @Test
    void preparingAgainSaysThatAllIsThereAndVerifyingThatItIsWhole() throws IOException {
        Path file = Files.writeString(folder.resolve("x.txt"), "valves open, turbines turn. ");

        Cli first = prepare("gpt2", file.toString());
        Cli again = prepare("gpt2", file.toString());
        Cli verify = Cli.run("data", "verify", folder.resolve("tokens").toString());

        assertThat(first.exitCode()).as(first.err()).isEqualTo(ExitCode.OK);
        assertThat(first.out())
                .contains("tokens of 1 documents, 2 bytes each, in 1 file")
                .contains("format = tokens, tokenizer = \"gpt2\"");
        assertThat(again.out()).contains("were there already");
        assertThat(verify.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(verify.out()).contains("whole", "(gpt2, 50,257 different)");
    }

    @Test
    void whatIsWrongIsToldTogetherAndNothingIsWritten() throws IOException {
        Path bad = Files.write(folder.resolve("bad.txt"), new byte[] {'a', (byte) 0xff, 'b'});
        Path lines = Files.writeString(folder.resolve("bad.jsonl"), "{\"text\": 3}\n");

        Cli options = prepare("bytes", "x", "--format=csv", "--threads=0", "--shard-tokens=0");
        Cli files = prepare("bytes", "none.txt", folder.resolve("*.csv").toString());
        Cli texts = prepare("gpt2", bad.toString(), lines.toString());
        Cli tokenizer = prepare("gpt3", bad.toString());
        Cli nothing = Cli.run("data", "verify", folder.toString());

        assertThat(options.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(options.err())
                .contains("4 problems", "--format: expected one of text, jsonl, parquet, got csv")
                .contains("--threads", "--shard-tokens", "FILE: expected an existing file");
        assertThat(files.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(files.err()).contains("none.txt", "*.csv").doesNotContain("configuration");
        assertThat(texts.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(texts.err()).contains("byte 1 is not UTF-8", "bad.jsonl:1");
        assertThat(tokenizer.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(tokenizer.err()).contains("gpt3: expected a folder with tokenizer.json");
        assertThat(nothing.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(nothing.err()).contains("prepared.json");
        assertThat(folder.resolve("tokens/prepared.json")).doesNotExist();
        assertThat(options.err() + files.err() + texts.err() + nothing.err())
                .doesNotContain("Exception", "\tat ");
    }

    @Test
    void optionsTextsAndTheTokenizerAreToldTogetherInTheWordsOfTheCommand() throws IOException {
        Path bad = Files.write(folder.resolve("bad.txt"), new byte[] {'a', (byte) 0xff, 'b'});
        Path lines = Files.writeString(folder.resolve("bad.jsonl"), "{\"text\": 3}\nx\n");
        Path empty = Files.writeString(folder.resolve("empty.txt"), "");
        String words = folder.resolve("words").toString();

        Cli all = prepare("gpt3", "none.txt", "--threads=0");
        Cli texts = prepare("gpt2", bad.toString(), lines.toString());
        Cli train =
                Cli.run(
                        "tokenizer",
                        "train",
                        "--vocabulary=300",
                        "--output",
                        words,
                        bad.toString());
        Cli none = prepare("bytes", empty.toString());
        Cli number = prepare("bytes", bad.toString(), "--shard-tokens=99999999999");

        assertThat(all.err()).contains("3 problems", "--tokenizer: gpt3", "--threads", "none.txt");
        assertThat(texts.err())
                .contains("--tokenizer: expected UTF-8", "or use --tokenizer bytes")
                .contains("--field: expected a line with the text member")
                .contains("--format: expected a JSON object", "or use --format text");
        assertThat(train.err()).contains("FILE: expected UTF-8", "; convert the file\n");
        assertThat(none.err()).contains("FILE: expected text in the files, got none");
        assertThat(number.err())
                .contains("--shard-tokens: expected 1 to 1073741824, got 99999999999");
        for (Cli cli : List.of(all, texts, train, none, number)) {
            assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(cli.err()).doesNotContain("data.", "Exception");
        }
    }

    @Test
    void tokensOfAnotherTokenizerAreRefusedByARun() throws IOException {
        Path file = Files.writeString(folder.resolve("x.txt"), Training.text(9_000));
        prepare("gpt2", file.toString());

        Trained run =
                Training.onText(folder.resolve("b"))
                        .set("data.source=" + folder.resolve("tokens"), "data.format=tokens")
                        .run();

        assertThat(run.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(run.err()).contains("data.tokenizer: expected that of", "gpt2, got bytes");
    }
}
