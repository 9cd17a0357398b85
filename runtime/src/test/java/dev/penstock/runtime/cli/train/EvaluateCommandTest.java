package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.inference.PlainGpt;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

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

    /** 13 windows of 16 tokens, not a multiple of the batch; what is left over is no window. */
    @Test
    void aFileIsMeasuredToItsEndAsAPlainForwardMeasuresIt() throws IOException {
        byte[] text = "It was a dark and stormy night; ".repeat(7).getBytes(StandardCharsets.UTF_8);
        int windows = (text.length - 1) / 16;
        Path file = Files.write(folder.resolve("night: a = b.txt"), text);
        double nats = 0;
        try (var reader = SavedCheckpoint.open(checkpoint).read()) {
            var truth = PlainGpt.of(SavedRun.MODEL, reader::fill);
            for (int window = 0; window < windows; window++) {
                int[] tokens = new int[17];
                for (int i = 0; i < 17; i++) {
                    tokens[i] = text[16 * window + i];
                }
                double[][] logits = truth.logits(Arrays.copyOf(tokens, 16));
                for (int i = 0; i < 16; i++) {
                    nats += PlainGpt.surprise(logits[i], tokens[i + 1]);
                }
            }
        }

        Cli evaluate = Cli.run("evaluate", run.toString(), "--data", file.toString(), "--json");
        JsonNode result = JSON.readTree(evaluate.out());

        assertThat(evaluate.exitCode()).as(evaluate.err()).isEqualTo(ExitCode.OK);
        assertThat(windows).isEqualTo(13);
        long bytes = 16L * windows;
        double loss = nats / bytes;
        assertThat(result.get("tokens").asLong()).isEqualTo(bytes);
        assertThat(result.get("bytes").asLong()).isEqualTo(bytes);
        assertThat(result.get("loss").asDouble()).isCloseTo(loss, within(1e-5 * loss));
        assertThat(result.get("bitsPerByte").asDouble())
                .isCloseTo(nats / Math.log(2) / bytes, within(1e-5 * loss));
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
        Path tiny = Files.writeString(folder.resolve("tiny.txt"), "0123456789012345");

        for (String file : List.of(tiny.toString(), folder + "/nowhere.txt")) {
            Cli evaluate = Cli.run("evaluate", run.toString(), "--data", file);

            assertThat(evaluate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(evaluate.err()).containsAnyOf("nowhere.txt", "at least 17 tokens");
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

    private String loss(String override) throws IOException {
        Cli evaluate = Cli.run("evaluate", run.toString(), override, "--json");
        return JSON.readTree(evaluate.out()).get("loss").toString();
    }
}
