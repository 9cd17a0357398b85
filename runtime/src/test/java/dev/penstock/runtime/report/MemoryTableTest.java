package dev.penstock.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.ConfiguredSteps;
import dev.penstock.runtime.metrics.MetricsWriter;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.runtime.metrics.StepTimes;
import dev.penstock.schedules.ir.PipelineShape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MemoryTableTest {
    private static final long MIB = 1 << 20;

    @TempDir Path folder;

    @Test
    void everyUseIsShownPlannedProvedAndMeasured() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "uses");
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 2, 1));
        train(directory, run, 1, 0);
        MemoryPlan plan =
                new MemoryPlan(
                        List.of(new MemoryUse("parameters", 39 * MIB)),
                        List.of(
                                new MemoryUse("parameters", 30 * MIB),
                                new MemoryUse("activations", 20 * MIB),
                                new MemoryUse("parameters", 10 * MIB),
                                new MemoryUse("mirrors", 0),
                                new MemoryUse("state on disk", 7 * MIB)));

        String summary = report(directory, run, List.of(plan, plan));

        assertThat(summary.replaceAll("\\s+", " ")) // long lines are folded
                .contains(
                        "rank 1, measured (proved): parameters 42.0 MiB (40.0 MiB), activations"
                                + " 19.0 MiB (20.0 MiB), kernels 1.0 MiB (0 B), state on disk"
                                + " 0 B (7.0 MiB)")
                .contains("rank 1 286.1 MiB (planned 60.0 MiB)");
        assertThat(Files.readString(directory.report()))
                .contains(
                        row("0", "parameters", "39.0 MiB", "40.0 MiB", "42.0 MiB", "+5.0 %"),
                        row("0", "activations", "-", "20.0 MiB", "19.0 MiB", "-5.0 %"),
                        row("1", "kernels", "-", "0 B", "1.0 MiB", "-"),
                        row("1", "state on disk", "-", "7.0 MiB", "0 B", "-100.0 %"))
                .doesNotContain("mirrors");
    }

    /** Four ranks at first, two after it was laid out anew. */
    @Test
    void aResumedRunTellsOfTheRanksItHasNow() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "resumed");
        train(directory, SimulatedRun.of("1f1b", PipelineShape.of(4, 4, 1)), 1, 0);
        SimulatedRun now = SimulatedRun.of("1f1b", PipelineShape.of(2, 2, 1));
        train(directory, now, 3, 2);

        String summary = report(directory, now, List.of());

        assertThat(summary)
                .contains(
                        "peak memory    rank 0 286.1 MiB, rank 1 286.1 MiB"
                                + System.lineSeparator());
        assertThat(RunCurves.read(directory.metrics()).steps()).isEqualTo(4);
    }

    /** As many ranks as before, with other stages: neither their peaks nor their times are one. */
    @Test
    void whatRanksHeldInAnotherLayoutIsForgotten() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "anew");
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4, 1));
        StepReport large = withPeaks(run.noisy(1), 900 * MIB);
        record(directory, run, 0, "a", List.of(large, withPeaks(run.noisy(2), 900 * MIB)));

        record(directory, run, 2, "b", List.of(withPeaks(run.perfect(3), 100 * MIB)));
        RunCurves anew = RunCurves.read(directory.metrics());

        StepTimes third = StepTimes.of(run.schedule(), run.perfect(3));
        assertThat(anew.peakBytes()).containsExactly(100 * MIB, 100 * MIB);
        assertThat(anew.meanNanos(Activity.FORWARD)[1])
                .isCloseTo(third.nanos(1, Activity.FORWARD), within(1.0));
        record(directory, run, 3, "b", List.of(withPeaks(run.perfect(4), 50 * MIB)));
        assertThat(RunCurves.read(directory.metrics()).peakBytes())
                .as("resumed in the same layout")
                .containsExactly(100 * MIB, 100 * MIB);
    }

    private static StepReport withPeaks(StepReport report, long bytes) {
        return with(report, rank -> bytes, List.of());
    }

    private static String row(String... cells) {
        return "<tr><td>" + String.join("</td><td>", cells) + "</td></tr>";
    }

    /** Two steps. */
    private static void train(RunDirectory directory, SimulatedRun run, long first, long recorded) {
        record(
                directory,
                run,
                recorded,
                "",
                List.of(withUses(run.noisy(first)), withUses(run.noisy(first + 1))));
    }

    private static void record(
            RunDirectory directory,
            SimulatedRun run,
            long recorded,
            String layout,
            List<StepReport> steps) {
        try (MetricsWriter writer =
                new MetricsWriter(
                        directory.metrics(),
                        recorded,
                        new PipelineMeter(run.schedule()),
                        new ConfiguredSteps(StepTokens.always(2048), _ -> 3e-4, layout),
                        InstantSource.system())) {
            steps.forEach(writer::onStep);
        }
    }

    private static StepReport withUses(StepReport report) {
        List<MemoryUse> uses =
                List.of(
                        new MemoryUse("odd", MIB),
                        new MemoryUse("parameters", 42 * MIB),
                        new MemoryUse("activations", 19 * MIB));
        return with(report, RankStep::peakBytes, uses);
    }

    private static StepReport with(
            StepReport report, ToLongFunction<RankStep> peak, List<MemoryUse> uses) {
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
                                                peak.applyAsLong(rank),
                                                uses,
                                                rank.allocatedHeapBytes(),
                                                rank.links(),
                                                rank.sent(),
                                                rank.collectiveNanos()))
                        .toList());
    }

    private static String report(RunDirectory directory, SimulatedRun run, List<MemoryPlan> plans) {
        RunFacts facts =
                new RunFacts(
                        "run",
                        "run {}",
                        run.schedule(),
                        RankGrid.pipeline(run.schedule().programs().size()),
                        4,
                        2048,
                        3_200_000,
                        plans,
                        List.of(),
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
