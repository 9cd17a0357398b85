package dev.penstock.runtime.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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

    @BeforeEach
    void aRunWithACheckpoint() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be, ".repeat(100));
        Path config = Files.writeString(folder.resolve("tiny.conf"), CONFIG);
        run = Files.createDirectory(folder.resolve("run"));
        SavedRun.write(run, 100);
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
