package dev.penstock.runtime.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.metrics.ConfiguredSteps;
import dev.penstock.runtime.metrics.MetricsWriter;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.schedules.ir.PipelineShape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two runs side by side. */
class ReportCommandTest {
    @TempDir private Path folder;

    @Test
    void figuresBitsAndSettingsOfTwoRunsAreCompared() throws IOException {
        Path a = run("a", "run { seed = 1, steps = 20 }", 20);
        Path b = run("b", "run { seed = 1, steps = 30 }", 30);
        Path page = folder.resolve("both.html");

        Cli report = Cli.run("report", a.toString(), b.toString(), "--output", page.toString());

        assertThat(report.exitCode()).as(report.err()).isZero();
        assertThat(report.out())
                .contains("losses have the same bits in all 20 steps that both have")
                .contains("run.steps = 20, 30")
                .doesNotContain("run.seed")
                .containsPattern("steps +20 +30");
        assertThat(Files.readString(page))
                .contains("run.steps")
                .contains("<svg")
                .doesNotContain("<script");
    }

    @Test
    void aComparisonAnswersProgramsInJson() throws IOException {
        Path a = run("a", "run { seed = 1, steps = 20 }", 20);
        Path b = run("b", "run { seed = 1, steps = 30 }", 30);

        Cli report = Cli.run("report", a.toString(), b.toString(), "--json");
        JsonNode answer = JsonMapper.builder().build().readTree(report.out());

        assertThat(answer.get("first").asText()).isEqualTo(a.toString());
        assertThat(answer.at("/settings/run.steps/1").asText()).isEqualTo("30");
        assertThat(answer.at("/figures/0/what").asText()).isEqualTo("steps");
        assertThat(answer.at("/figures/0/second").asText()).isEqualTo("30");
        assertThat(answer.get("losses").asText()).contains("all 20 steps");
        Cli alone = Cli.run("report", a.toString(), "--json");
        assertThat(alone.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(alone.err()).contains("--json: expected OTHER_DIR beside it");
    }

    @Test
    void theStepWhereLossesPartIsNamed() throws IOException {
        Path a = run("a", "run.seed = 1", 20);
        Path b = run("b", "run.seed = 2", 20);
        Path metrics = b.resolve("metrics.jsonl");
        Files.write(
                metrics,
                Files.readAllLines(metrics).stream()
                        .map(
                                line ->
                                        line.contains("\"step\":13,")
                                                ? line.replaceFirst(
                                                        "\"lossBits\":\"[0-9a-f]+\"",
                                                        "\"lossBits\":\"3ff0000000000000\"")
                                                : line)
                        .toList());

        Cli report = Cli.run("report", a.toString(), b.toString());

        assertThat(report.out()).contains("the same bits for 12 steps, and part at step 13");
    }

    @Test
    void bothMissingRunsAreNamedAtOnce() {
        Cli report = Cli.run("report", folder.resolve("x").toString(), folder.toString());

        assertThat(report.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(report.err()).contains("RUN_DIR").contains("OTHER_DIR");
    }

    private Path run(String name, String configuration, int steps) throws IOException {
        Path directory = Files.createDirectory(folder.resolve(name));
        Files.writeString(directory.resolve("resolved.conf"), configuration);
        var run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4));
        try (var writer =
                new MetricsWriter(
                        directory.resolve("metrics.jsonl"),
                        0,
                        new PipelineMeter(run.schedule()),
                        new ConfiguredSteps(StepTokens.always(64), _ -> 1e-3, ""),
                        InstantSource.system())) {
            for (int step = 1; step <= steps; step++) {
                writer.onStep(run.noisy(step));
            }
        }
        return directory;
    }
}
