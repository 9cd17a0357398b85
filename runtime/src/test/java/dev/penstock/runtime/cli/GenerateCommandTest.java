package dev.penstock.runtime.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.checkpoint.HuggingFaceExport;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GenerateCommandTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir Path run;

    private String checkpoint = "";

    @BeforeEach
    void saveARun() {
        checkpoint = SavedRun.write(run, 100).toString();
    }

    @Test
    void continuesThePromptWithTheAskedNumberOfTokens() throws IOException {
        Cli generate = Cli.run("generate", run.toString(), "--prompt=abc", "--tokens=30", "--json");
        JsonNode answer = JSON.readTree(generate.out());

        assertThat(generate.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(answer.get("prompt").asText()).isEqualTo("abc");
        assertThat(answer.get("tokens")).hasSize(30);
    }

    @Test
    void theSameSeedGivesTheSameText() throws IOException {
        String first = tokens("--seed=1");

        assertThat(tokens("--seed=1")).isEqualTo(first);
        assertThat(tokens("--seed=2")).isNotEqualTo(first);
    }

    @Test
    void oneCandidateIsTheLikeliestToken() throws IOException {
        assertThat(tokens("--top-k=1")).isEqualTo(tokens("--temperature=0"));
    }

    @Test
    void aCheckpointARunAndExportedWeightsAreTheSameModel() throws IOException {
        Path folder = run.resolve("exported");
        SavedCheckpoint saved = SavedCheckpoint.open(Path.of(checkpoint));
        try (var reader = saved.read()) {
            HuggingFaceExport.write(folder.resolve("model.safetensors"), SavedRun.MODEL, reader);
        }

        assertThat(tokensOf(checkpoint)).isEqualTo(tokensOf(run.toString()));
        assertThat(tokensOf(folder.toString())).isEqualTo(tokensOf(run.toString()));
    }

    @Test
    void textForPeopleBeginsWithThePrompt() {
        Cli generate = Cli.run("generate", run.toString(), "--prompt=abc", "--tokens=5");

        assertThat(generate.out()).startsWith("abc").hasSizeGreaterThan(4);
    }

    @Test
    void allBadOptionsAreToldAtOnce() {
        Cli generate =
                Cli.run("generate", run.toString(), "--tokens=0", "--temperature=-1", "--top-p=2");

        assertThat(generate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(generate.err()).contains("--tokens", "--temperature", "--top-p");
    }

    @Test
    void aModelThatIsNotThereIsBadInput() {
        Cli generate = Cli.run("generate", run.resolve("nowhere").toString());

        assertThat(generate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(generate.err()).contains("nowhere", "no checkpoint here");
    }

    @Test
    void tokensThatTheModelDoesNotKnowAreBadInput() {
        Cli generate = Cli.run("generate", run.toString(), "--tokenizer=gpt2", "--prompt=pipeline");

        assertThat(generate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(generate.err()).contains("0 to 255", "--tokenizer");
    }

    private String tokens(String option) throws IOException {
        return tokensOf(run.toString(), option);
    }

    private static String tokensOf(String model, String... options) throws IOException {
        String[] arguments = new String[options.length + 5];
        System.arraycopy(
                new String[] {"generate", model, "--prompt=x", "--tokens=20", "--json"},
                0,
                arguments,
                0,
                5);
        System.arraycopy(options, 0, arguments, 5, options.length);
        return JSON.readTree(Cli.run(arguments).out()).get("tokens").toString();
    }
}
