package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.checkpoint.HuggingFaceExport;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.model.family.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
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
        assertThat(answer.get("end").asText()).isEqualTo("length");
    }

    @Test
    void anyNumberOfStagesWritesTheSameText() throws IOException {
        String one = tokens("--stages=1");

        assertThat(tokens("--stages=2")).isEqualTo(one);
        assertThat(tokens("--stages=3")).isEqualTo(one);
    }

    @Test
    void theRunSaysHowManyStagesThereAre() throws IOException {
        Files.writeString(
                run.resolve("resolved.conf"),
                "data.source = x, model { context = 16, width = 8, layers = 9, heads = 2 },"
                        + " pipeline.stages = 9");

        Cli generate = Cli.run("generate", checkpoint, "--prompt=x");

        assertThat(generate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(generate.err()).contains("--stages: expected 1 to 3", "got 9");
    }

    @Test
    void severalPromptsAreAnsweredInTheirOrder() throws IOException {
        String[] ask = {"generate", run.toString(), "--prompt=one", "--prompt=two", "--tokens=9"};
        String[] askJson = Arrays.copyOf(ask, ask.length + 1);
        askJson[ask.length] = "--json";

        JsonNode answers = JSON.readTree(Cli.run(askJson).out());
        String text = Cli.run(ask).out();

        assertThat(answers).hasSize(2);
        assertThat(answers.get(1).get("prompt").asText()).isEqualTo("two");
        assertThat(text)
                .isEqualTo(
                        "--- 1 of 2%none%s%n--- 2 of 2%ntwo%s%n"
                                .formatted(
                                        answers.get(0).get("text").asText(),
                                        answers.get(1).get("text").asText()));
    }

    /** As a run of it would be refused. */
    @Test
    void headsThatAreTooWideForAGpuAreRefusedBeforeItIsLookedFor() throws IOException {
        Path wide = Files.createDirectory(run.resolve("wide"));
        SavedRun.write(wide, 3, ModelConfig.gpt2(256, 16, 132, 1, 1, true));
        Path text = Files.writeString(run.resolve("x.txt"), "to be or not to be");

        Cli generate =
                Cli.run("generate", wide.toString(), "--prompt=a", "--device=cuda", "--stages=9");
        Cli evaluate =
                Cli.run("evaluate", checkpointOf(wide), "--data", text.toString(), "--device=cuda");

        for (Cli cli : List.of(generate, evaluate)) {
            assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(cli.err())
                    .contains("--device: expected a model whose heads have at most 128 columns")
                    .contains("got 132; try --device cpu");
        }
        assertThat(generate.err()).contains("2 problems", "--stages");
    }

    private static String checkpointOf(Path run) throws IOException {
        try (var steps = Files.list(run.resolve("checkpoints"))) {
            return steps.findFirst().orElseThrow().toString();
        }
    }

    @Test
    void anOptionThatIsNoWholeNumberIsToldWithItsRange() {
        Cli tokens = Cli.run("generate", run.toString(), "--tokens=many");
        Cli topK = Cli.run("generate", run.toString(), "--top-k=1.5");

        assertThat(tokens.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(tokens.err()).contains("--tokens: expected 1 or more, got many");
        assertThat(topK.err()).contains("--top-k: expected 0 or more, got 1.5");
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
    void allThatIsWrongIsToldAtOnce() {
        Cli generate =
                Cli.run(
                        "generate",
                        run.resolve("nowhere").toString(),
                        "--tokens=0",
                        "--temperature=-1",
                        "--top-p=2",
                        "--top-k=-1",
                        "--prompt=",
                        "--tokenizer=words",
                        "--device=abacus");

        assertThat(generate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(generate.out()).isEmpty();
        assertThat(generate.err())
                .contains("8 problems", "--tokens", "--temperature", "--top-p", "--top-k")
                .contains("--prompt: expected a text, got an empty one")
                .contains("bytes, gpt2", "abacus", "no checkpoint here");
    }

    @Test
    void aPromptLongerThanTheContextIsBadInput() {
        Cli generate =
                Cli.run("generate", run.toString(), "--prompt=ok", "--prompt=" + "x".repeat(17));

        assertThat(generate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(generate.err())
                .contains("--prompt 2: expected at most 16 tokens, the model's context, got 17");
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

    /** Read by bytes, the model would write something, and its figures would be of nothing. */
    @Test
    void weightsWithoutATokenizerAreRefusedTogetherWithAllElse() throws IOException {
        String weights = "src/test/resources/golden-models/llama";
        Path text = Files.writeString(run.resolve("text.txt"), "some text");

        Cli generate = Cli.run("generate", weights, "--top-k=-1");
        Cli evaluate = Cli.run("evaluate", weights, "--data=" + text, "--stages=99");

        assertThat(generate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(generate.err()).contains("2 problems", "--top-k", "--tokenizer: expected");
        assertThat(evaluate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(evaluate.err())
                .contains("2 problems", "--stages", "the tokenizer of a vocabulary of 64");
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
