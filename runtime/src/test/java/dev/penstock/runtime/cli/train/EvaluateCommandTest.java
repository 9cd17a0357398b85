package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.checkpoint.HuggingFaceExport;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.inference.PlainGpt;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class EvaluateCommandTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final String CONFIG =
            """
            data { source = corpus.txt, validation-fraction = 0.5 }
            model { context = 16, width = 8, layers = 1, heads = 2 }
            batch { sequences = 2, micro-batches = 2 }
            evaluation.batches = 2
            device { gemm = java, threads = 1 }
            """;

    @TempDir Path folder;

    private Path run = Path.of("");
    private Path checkpoint = Path.of("");

    @BeforeEach
    void aRunWithACheckpoint() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be, ".repeat(100));
        Path config = Files.writeString(folder.resolve("tiny.conf"), CONFIG);
        run = Files.createDirectory(folder.resolve("run"));
        checkpoint = SavedRun.write(run, 100);
        Files.writeString(
                run.resolve("resolved.conf"), Cli.run("config", "check", config.toString()).out());
    }

    @Test
    void aRunIsEvaluatedAtItsNewestCheckpoint() throws IOException {
        Cli evaluate = Cli.run("evaluate", run.toString(), "--json");
        JsonNode result = JSON.readTree(evaluate.out());

        assertThat(evaluate.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(result.get("step").asLong()).isEqualTo(100);
        assertThat(result.get("batches").asLong()).isEqualTo(2);
        double loss = result.get("loss").asDouble();
        assertThat(loss).isPositive();
        assertThat(result.get("perplexity").asDouble()).isCloseTo(Math.exp(loss), within(1e-9));
    }

    @Test
    void theLossHasTheSameBitsInOneStageAndInTwo() throws IOException {
        String one = loss("--set=pipeline.stages=1");
        String two = loss("--set=pipeline.stages=2");

        assertThat(two).isEqualTo(one);
    }

    /** 13 windows of 16 tokens and a short one: every token but the first is a target once. */
    @Test
    void aFileIsMeasuredToItsEndAsAPlainForwardMeasuresIt() throws IOException {
        byte[] text = "It was a dark and stormy night; ".repeat(7).getBytes(StandardCharsets.UTF_8);
        Path file = Files.write(folder.resolve("night: a = b.txt"), text);
        double nats = 0;
        try (var reader = SavedCheckpoint.open(checkpoint).read()) {
            var truth = PlainGpt.of(SavedRun.MODEL, reader::fill);
            for (int start = 0; start < text.length - 1; start += 16) {
                int[] tokens = new int[Math.min(16, text.length - 1 - start)];
                for (int i = 0; i < tokens.length; i++) {
                    tokens[i] = text[start + i];
                }
                double[][] logits = truth.logits(tokens);
                for (int i = 0; i < tokens.length; i++) {
                    nats += PlainGpt.surprise(logits[i], text[start + i + 1]);
                }
            }
        }

        Cli evaluate = Cli.run("evaluate", run.toString(), "--data", file.toString(), "--json");
        JsonNode result = JSON.readTree(evaluate.out());

        assertThat(evaluate.exitCode()).as(evaluate.err()).isEqualTo(ExitCode.OK);
        long bytes = text.length - 1L;
        double loss = nats / bytes;
        assertThat(result.get("step").asLong()).isEqualTo(100);
        assertThat(result.get("protocol").asText()).isEqualTo("plain");
        assertThat(result.get("tokens").asLong()).isEqualTo(bytes);
        assertThat(result.get("bytes").asLong()).isEqualTo(bytes);
        assertThat(result.get("loss").asDouble()).isCloseTo(loss, within(1e-5 * loss));
        assertThat(result.get("bitsPerByte").asDouble())
                .isCloseTo(nats / Math.log(2) / bytes, within(1e-5 * loss));
    }

    /** 80 tokens are four windows of 16; a batch has room for six, and five batches for thirty. */
    @ParameterizedTest
    @CsvSource({"6, 3", "3, 3", "4, 2", "1, 1"})
    void everyWindowThatIsHeldOutCountsOnceHoweverManyBatchesAreAskedFor(
            int sequences, int microBatches) throws IOException {
        byte[] text = Files.readAllBytes(folder.resolve("corpus.txt"));
        double nats = 0;
        for (int start = text.length - 80; start + 16 < text.length; start += 16) {
            nats += nats(Arrays.copyOfRange(text, start, start + 17));
        }

        JsonNode result =
                evaluated(
                        "data.validation-fraction=0.04",
                        "batch.sequences=" + sequences,
                        "batch.micro-batches=" + microBatches,
                        "evaluation.batches=5");

        assertThat(result.get("rows").asLong()).isEqualTo(4);
        assertThat(result.get("tokens").asLong()).isEqualTo(64);
        assertThat(result.get("bytes").asLong()).isEqualTo(64);
        assertThat(result.get("batches").asInt()).isEqualTo(Math.ceilDiv(4, sequences));
        assertThat(result.get("loss").asDouble()).isCloseTo(nats / 64, within(1e-5));
    }

    /** Documents of 6 to 10 bytes, joined by ends of lines; the last five are held out. */
    @ParameterizedTest
    @ValueSource(strings = {"padded", "lengths"})
    void everyDocumentThatIsHeldOutCountsOnce(String packing) throws IOException {
        StringBuilder lines = new StringBuilder();
        double nats = 0;
        int targets = 0;
        int trained = 0;
        for (int i = 0; i < 10; i++) {
            String document = "be it so, indeed".substring(i, 10 + i / 2 + i % 2);
            lines.append("{\"text\": \"%s\"}\n".formatted(document));
            byte[] row = (document + (i < 9 ? "\n" : "")).getBytes(StandardCharsets.UTF_8);
            if (i < 5) {
                trained += row.length;
            } else {
                nats += nats(row);
                targets += row.length - 1;
            }
        }
        Path source = Files.writeString(folder.resolve("lines.jsonl"), lines);
        double fraction = (targets + 5 + 0.5) / (trained + targets + 5);

        JsonNode result =
                evaluated(
                        "data.source=\"%s\"".formatted(source),
                        "data.format=jsonl",
                        "data.packing=" + packing,
                        "data.validation-fraction=" + fraction,
                        "batch.length-step=4",
                        "evaluation.batches=30");

        assertThat(result.get("rows").asLong()).isEqualTo(5);
        assertThat(result.get("tokens").asLong()).isEqualTo(targets);
        assertThat(result.get("batches").asInt()).isEqualTo(3);
        assertThat(result.get("loss").asDouble()).isCloseTo(nats / targets, within(1e-5));
    }

    private JsonNode evaluated(String... settings) throws IOException {
        List<String> arguments = new ArrayList<>(List.of("evaluate", run.toString(), "--json"));
        for (String setting : settings) {
            arguments.add("--set=" + setting);
        }
        Cli evaluate = Cli.run(arguments.toArray(String[]::new));
        assertThat(evaluate.exitCode()).as(evaluate.err()).isEqualTo(ExitCode.OK);
        return JSON.readTree(evaluate.out());
    }

    /** The surprise of a plain forward at each byte but the first. */
    private double nats(byte[] row) throws IOException {
        double nats = 0;
        int[] tokens = new int[row.length - 1];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = row[i];
        }
        try (var reader = SavedCheckpoint.open(checkpoint).read()) {
            double[][] logits = PlainGpt.of(SavedRun.MODEL, reader::fill).logits(tokens);
            for (int i = 0; i < tokens.length; i++) {
                nats += PlainGpt.surprise(logits[i], row[i + 1]);
            }
        }
        return nats;
    }

    /** The exported folder, too: three stages, windows that do not overlap by name. */
    @Test
    void aRunAndItsExportedWeightsHaveTheSameFiguresByFileAndInTotal() throws IOException {
        Path texts = Files.createDirectory(folder.resolve("texts"));
        Files.writeString(texts.resolve("de.txt"), "Es war eine dunkle und stürmische Nacht");
        Files.writeString(texts.resolve("en.txt"), "It was a dark and stormy night");
        Path weights = folder.resolve("weights");
        try (var reader = SavedCheckpoint.open(checkpoint).read()) {
            HuggingFaceExport.write(weights.resolve("model.safetensors"), SavedRun.MODEL, reader);
        }

        Cli ofRun = Cli.run("evaluate", run.toString(), "--data", texts.toString(), "--by-file");
        String[] words = {
            "evaluate",
            weights.toString(),
            "--data",
            texts.toString(),
            "--by-file",
            "--stride=16",
            "--stages=3",
            "--json"
        };
        JsonNode ofWeights = JSON.readTree(Cli.run(words).out());

        assertThat(ofWeights.get("files")).hasSize(2);
        assertThat(ofWeights.get("tokens").asLong())
                .isEqualTo(
                        ofWeights.get("files").get(0).get("tokens").asLong()
                                + ofWeights.get("files").get(1).get("tokens").asLong());
        List<String> lines = ofRun.out().lines().toList();
        assertThat(lines).hasSize(5);
        assertThat(lines.get(0))
                .startsWith("text of ")
                .endsWith("by protocol plain, after step 100");
        assertThat(lines.get(1)).contains("protocol", "tokens", "perplexity", "bits per byte");
        assertThat(lines.get(2)).startsWith("de.txt  plain ").contains(" 39 ");
        assertThat(lines.get(3)).startsWith("en.txt  plain ").contains(" 29 ");
        assertThat(lines.get(4))
                .startsWith("total")
                .contains("%.4f".formatted(ofWeights.get("loss").asDouble()));
    }

    @Test
    void tasksFollowTheProtocolThatIsNamed() throws IOException {
        Path passages = folder.resolve("lambada.jsonl");
        Files.writeString(passages, "{\"text\": \"to be or not to be\"}\n{\"text\": \"one\"}\n");
        Path questions = folder.resolve("piqa.jsonl");
        Files.writeString(
                questions,
                """
                {"goal": "to be", "sol1": "or not", "sol2": "and", "label": 0}
                {"context": "to be", "choices": ["or not", "and", "if"], "answer": 1}
                {"activity_label": "Being", "ctx_a": "To be.", "ctx_b": "or", "endings": ["so", "no"], "label": "1"}
                """);

        JsonNode lambada = measured(passages, "--task=lambada", "--protocol=megatron");
        JsonNode choices = measured(questions, "--task=choices");

        assertThat(lambada.get("texts").asLong()).isEqualTo(2);
        assertThat(lambada.get("accuracy").isDouble()).isTrue();
        assertThat(choices.get("protocol").asText()).isEqualTo("lm-eval");
        assertThat(choices.get("questions").asLong()).isEqualTo(3);
        assertThat(choices.get("accNorm").isDouble()).isTrue();
    }

    private JsonNode measured(Path file, String... options) throws IOException {
        List<String> words =
                new ArrayList<>(List.of("evaluate", run.toString(), "--json", "--data"));
        words.add(file.toString());
        words.addAll(List.of(options));
        Cli evaluate = Cli.run(words.toArray(String[]::new));
        assertThat(evaluate.exitCode()).as(evaluate.err()).isEqualTo(ExitCode.OK);
        return JSON.readTree(evaluate.out());
    }

    @Test
    void allThatIsWrongWithOptionsIsToldAtOnce() {
        Cli evaluate =
                Cli.run(
                        "evaluate",
                        run.toString(),
                        "--task=lambada",
                        "--protocol=plain",
                        "--device=abacus",
                        "--set=model.width=9",
                        "--data=" + folder + "/nowhere.jsonl");

        assertThat(evaluate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(evaluate.err())
                .contains("--protocol: expected megatron or lm-eval", "got plain")
                .contains("--device: expected auto")
                .contains("--set: expected a key of data", "got model.width=9")
                .contains("--data: expected an existing file", "nowhere.jsonl")
                .contains("penstock: 4 problems");
    }

    @Test
    void linesThatAreNotOfTheTaskAreNamed() throws IOException {
        Path file = folder.resolve("bad.jsonl");
        Files.writeString(
                file,
                """
                {"context": "a", "choices": ["b", "c"], "answer": 0}
                {"context": "a",

                {"context": "a", "choices": ["b"], "answer": 0}
                {"context": "a", "choices": ["b", "c"], "answer": 2}
                {"choices": ["b", "c"], "answer": 1}
                {"context": "a", "choices": ["b", "a choice that is too long"], "answer": 1}
                """);

        Cli evaluate = Cli.run("evaluate", run.toString(), "--task=choices", "--data=" + file);

        assertThat(evaluate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(evaluate.err())
                .contains("bad.jsonl:2: expected a JSON object, got not JSON")
                .contains("bad.jsonl:4: expected two choices or more")
                .contains("bad.jsonl:5: expected an answer from 0 to 1, got 2")
                .contains("bad.jsonl:6: expected the text member 'context', got none")
                .contains("bad.jsonl:7: expected 1 to 16 tokens to guess", "got 26");
    }

    @Test
    void aStrideBeyondTheContextIsRefused() throws IOException {
        Path file = Files.writeString(folder.resolve("some.txt"), "some text");

        Cli evaluate = Cli.run("evaluate", run.toString(), "--stride=17", "--data=" + file);

        assertThat(evaluate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(evaluate.err()).contains("--stride: expected 1 to 16 tokens", "got 17");
    }

    @Test
    void withoutDataOnlyWhatARunHeldOutIsMeasured() throws IOException {
        Cli task = Cli.run("evaluate", run.toString(), "--task=lambada", "--protocol=lm-eval");
        Path weights = folder.resolve("weights");
        try (var reader = SavedCheckpoint.open(checkpoint).read()) {
            HuggingFaceExport.write(weights.resolve("model.safetensors"), SavedRun.MODEL, reader);
        }
        Cli ofWeights = Cli.run("evaluate", weights.toString());

        assertThat(task.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(task.err()).contains("--data: expected a text");
        assertThat(ofWeights.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(ofWeights.err()).contains("--data: expected a text", "only a run");
    }

    @Test
    void peopleReadAllMeasures() {
        Cli evaluate = Cli.run("evaluate", run.toString());

        assertThat(evaluate.out())
                .contains("held-out loss", "perplexity", "bits per token", "bits per byte")
                .contains("(64 tokens, 64 bytes, 2 batches)");
    }

    @Test
    void aFileThatIsNotThereOrTooShortIsBadInput() throws IOException {
        Path tiny = Files.writeString(folder.resolve("tiny.txt"), "0");

        for (String file : List.of(tiny.toString(), folder + "/nowhere.txt")) {
            Cli evaluate = Cli.run("evaluate", run.toString(), "--data", file);

            assertThat(evaluate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(evaluate.err()).containsAnyOf("nowhere.txt", "at least 2 tokens");
        }
    }

    @Test
    void aFolderWithoutARunIsBadInput() {
        Cli evaluate = Cli.run("evaluate", folder.toString());

        assertThat(evaluate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(evaluate.err()).contains("resolved.conf");
    }

    @Test
    void withoutHeldOutTextThereIsNoLoss() {
        Cli evaluate = Cli.run("evaluate", run.toString(), "--set", "data.validation-fraction=0");

        assertThat(evaluate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(evaluate.err()).contains("data.validation-fraction");
    }

    @Test
    void aModelOfAnotherShapeIsRefusedWithBothShapes() {
        Cli evaluate = Cli.run("evaluate", run.toString(), "--set", "model.width=12");

        assertThat(evaluate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(evaluate.err()).contains("[256, 12]", "[256, 8]");
    }

    @Test
    void weightsThatAreNoNumbersEndEveryUseOfThemByTheirName() throws IOException {
        Path broken = folder.resolve("broken");
        Files.createDirectory(broken);
        SavedRun.writeWithNan(broken, 100, "h.0.mlp.c_fc.weight");
        Files.copy(run.resolve("resolved.conf"), broken.resolve("resolved.conf"));
        String text = folder.resolve("corpus.txt").toString();

        Cli heldOut = Cli.run("evaluate", broken.toString());
        Cli file = Cli.run("evaluate", broken.toString(), "--data", text);
        Cli generate = Cli.run("generate", broken.toString(), "--prompt=to", "--tokens=3");

        for (Cli cli : List.of(heldOut, file, generate)) {
            assertThat(cli.exitCode()).as(cli.out()).isEqualTo(ExitCode.FAILURE);
            assertThat(cli.err())
                    .contains("h.0.mlp.c_fc.weight: expected finite numbers, got NaN")
                    .doesNotContain("Exception");
            assertThat(cli.out()).doesNotContain("NaN");
        }
    }

    @Test
    void optionsPathsAndWeightsAreToldTogether() throws IOException {
        Path nowhere = folder.resolve("nowhere");

        Cli task =
                Cli.run(
                        "evaluate",
                        nowhere.toString(),
                        "--data=none.txt",
                        "--task=riddles",
                        "--device=tpu");
        Cli stages =
                Cli.run(
                        "evaluate",
                        checkpoint.toString(),
                        "--data=none.txt",
                        "--task=riddles",
                        "--stages=9");
        Cli heldOut = Cli.run("evaluate", nowhere.toString(), "--stride=3");

        assertThat(task.err())
                .contains("4 problems", "--task", "--device", nowhere.toString(), "none.txt");
        assertThat(stages.err()).contains("3 problems", "--task", "--stages", "none.txt");
        assertThat(heldOut.err())
                .contains("2 problems", "--data", "RUN: cannot open a run", nowhere.toString());
    }

    private String loss(String override) throws IOException {
        Cli evaluate = Cli.run("evaluate", run.toString(), override, "--json");
        return JSON.readTree(evaluate.out()).get("loss").toString();
    }
}
