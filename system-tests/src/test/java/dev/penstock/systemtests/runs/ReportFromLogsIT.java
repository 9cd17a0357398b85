package dev.penstock.systemtests.runs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A run's logs give the same report that its process writes at the end. */
class ReportFromLogsIT {
    private static final List<String> FILES =
            List.of(
                    "report.html",
                    "summary.json",
                    "profile.txt",
                    "trace.json",
                    "gantt.svg",
                    "loss.svg");

    @TempDir Path folder;

    @Test
    void theLogsGiveTheSameFigures() throws IOException {
        Trained trained =
                Training.onText(folder)
                        .set("report.op-times-every=1", "run.steps=12", "pipeline.stages=2")
                        .complete();
        Path run = trained.directory();
        JsonNode own = summary(run);
        String program = opsOf(run.resolve("profile.txt"));
        String curve = Files.readString(run.resolve("loss.svg"));
        expectItsOwnReportToStay(run);
        for (String file : FILES) {
            Files.delete(run.resolve(file));
        }

        Cli made = Cli.run("report", run.toString());

        assertThat(made.exitCode()).as(made.err()).isZero();
        assertThat(made.out())
                .contains("completed in ", "measured: parameters ")
                .doesNotContain("problem");
        for (String field : List.of("run", "outcome", "steps", "loss", "tokensPerSecond")) {
            assertThat(summary(run).get(field)).as(field).isEqualTo(own.get(field));
        }
        for (int rank = 0; rank < 2; rank++) {
            for (String field : List.of("plannedBytes", "peakBytes", "sentBytes")) {
                assertThat(summary(run).get("ranks").get(rank).get(field))
                        .as(field)
                        .isEqualTo(own.get("ranks").get(rank).get(field));
            }
        }
        assertThat(summary(run).get("predictionError").asDouble())
                .as("of times in whole microseconds")
                .isCloseTo(own.get("predictionError").asDouble(), within(0.05));
        assertThat(opsOf(run.resolve("profile.txt"))).isEqualTo(program);
        assertThat(run.resolve("loss.svg")).hasContent(curve);
        FILES.forEach(file -> assertThat(run.resolve(file)).isNotEmptyFile());
    }

    /**
     * The run's own report has what the logs do not have: a sample of the model, what was proved
     * and predicted.
     */
    private static void expectItsOwnReportToStay(Path run) throws IOException {
        byte[] own = Files.readAllBytes(run.resolve("report.html"));
        Path other = run.resolve("from-logs.html");

        Cli kept = Cli.run("report", run.toString());
        Cli elsewhere = Cli.run("report", run.toString(), "--output", other.toString());

        assertThat(kept.exitCode()).as(kept.err()).isZero();
        assertThat(kept.out()).contains("report.html was written by the run");
        assertThat(elsewhere.exitCode()).as(elsewhere.err()).isZero();
        assertThat(other).content().contains("completed");
        assertThat(run.resolve("report.html")).hasBinaryContent(own);
    }

    @Test
    void aDirectoryWithoutALogIsNotARun() throws IOException {
        Path run = Training.onText(folder).set("run.steps=2").complete().directory();
        Files.delete(run.resolve("events.jsonl"));

        Cli refused = Cli.run("report", run.toString());

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("expected the log of a run", "events.jsonl");
    }

    private static JsonNode summary(Path run) throws IOException {
        return new ObjectMapper().readTree(run.resolve("summary.json").toFile());
    }

    /** The lines of a profile without their costs. */
    private static String opsOf(Path profile) throws IOException {
        List<String> ops = new ArrayList<>();
        for (String line : Files.readAllLines(profile)) {
            ops.add(line.replaceAll(" \\d+$", ""));
        }
        return String.join("\n", ops);
    }
}
