package dev.penstock.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.metrics.ConfiguredSteps;
import dev.penstock.runtime.metrics.MetricsWriter;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.schedules.ir.PipelineShape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TrafficTableTest {
    private static final StepTraffic SENDS = new StepTraffic(2048, 0, 0, 1_000_000, 0, 70, 5, 0, 0);
    private static final StepTraffic LESS = new StepTraffic(2048, 0, 0, 999_000, 0, 70, 5, 0, 0);

    private final SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 2, 1));

    @TempDir Path folder;

    @Test
    void predictedAndMeasuredStandSideBySideToTheByte() throws IOException {
        RunDirectory directory = train(List.of(LESS, SENDS, SENDS));

        String told = report(directory, List.of(SENDS, LESS));

        assertThat(told.lines())
                .contains(
                        "  sent per step  rank 0 978.6 KiB (as predicted): activations 2.0 KiB,"
                                + " tensor sums 976.6 KiB,",
                        "                 gradient sums 70 B, tied gradients 5 B");
        assertThat(Files.readString(directory.report()))
                .contains("measured in the last step; 2 steps up to it sent just as much")
                .contains(
                        row("0", "activations", "2,048", "2,048", "0"),
                        row("0", "tensor sums", "1,000,000", "1,000,000", "0"),
                        row("1", "tensor sums", "999,000", "1,000,000", "+1,000"),
                        row("1", "all", "1,001,123", "1,002,123", "+1,000"))
                .doesNotContain("keys/values");
    }

    @Test
    void programsReadTheSameInTheSummary() throws IOException {
        RunDirectory directory = train(List.of(SENDS));
        report(directory, List.of(LESS, SENDS));

        JsonNode summary = new ObjectMapper().readTree(directory.summary().toFile());

        assertThat(summary.get("outcome").asText()).isEqualTo("completed");
        assertThat(summary.get("steps").asLong()).isEqualTo(1);
        JsonNode first = summary.get("ranks").get(0);
        assertThat(first.get("predictedSentBytes").get("tensor sums").asLong()).isEqualTo(999_000);
        assertThat(first.get("sentBytes").get("tensor sums").asLong()).isEqualTo(1_000_000);
        assertThat(first.get("sentBytes").get("keys/values").asLong()).isZero();
        assertThat(first.get("plannedBytes").isNull()).isTrue();
    }

    @Test
    void whoWasNotPredictedIsShownAsMeasuredAlone() throws IOException {
        RunDirectory directory = train(List.of(SENDS));

        assertThat(report(directory, List.of())).contains("rank 0 978.6 KiB: activations");
        assertThat(Files.readString(directory.report()))
                .contains(row("0", "tied gradients", "-", "5", "-"));
    }

    private static String row(String... cells) {
        return "<tr><td>" + String.join("</td><td>", cells) + "</td></tr>";
    }

    /** A step for each entry, which is what both ranks send in it. */
    private RunDirectory train(List<StepTraffic> steps) {
        RunDirectory directory = RunDirectory.createUnder(folder, "traffic");
        try (MetricsWriter writer =
                new MetricsWriter(
                        directory.metrics(),
                        0,
                        new PipelineMeter(run.schedule()),
                        new ConfiguredSteps(StepTokens.always(2048), _ -> 3e-4, "one"),
                        InstantSource.system())) {
            for (int step = 0; step < steps.size(); step++) {
                writer.onStep(sending(run.noisy(step + 1), steps.get(step)));
            }
        }
        return directory;
    }

    private static StepReport sending(StepReport report, StepTraffic traffic) {
        return new StepReport(
                report.step(),
                report.loss(),
                report.gradientNorm(),
                report.clipFactor(),
                report.startNanos(),
                report.endNanos(),
                report.ranks().stream()
                        .map(
                                rank ->
                                        new RankStep(
                                                rank.rank(),
                                                rank.opStartNanos(),
                                                rank.opEndNanos(),
                                                rank.updateStartNanos(),
                                                rank.updateEndNanos(),
                                                rank.peakBytes(),
                                                rank.uses(),
                                                rank.allocatedHeapBytes(),
                                                rank.links(),
                                                traffic,
                                                rank.collectiveNanos()))
                        .toList());
    }

    private String report(RunDirectory directory, List<StepTraffic> predicted) {
        RunFacts facts =
                new RunFacts(
                        "run",
                        "run {}",
                        run.schedule(),
                        RankGrid.pipeline(2),
                        4,
                        2048,
                        3_200_000,
                        List.of(),
                        predicted,
                        List::of,
                        (costs, _) -> costs,
                        Map.of());
        return new RunReport(directory, facts, new RunRecorder(List.of()))
                .write(
                        RunEnding.of(
                                new RunOutcome.Completed(4),
                                Duration.ofSeconds(1),
                                Optional.empty()));
    }
}
