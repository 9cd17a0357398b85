package dev.penstock.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.events.EventLogReader;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.events.RunEventLines;
import dev.penstock.runtime.metrics.RankSteps;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.runtime.report.LineChart.Look;
import dev.penstock.runtime.report.LineChart.Series;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.ScheduleText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PicturesTest {
    @TempDir private Path folder;

    @Test
    void theGanttOfAVeryLargeStepStaysSmall() {
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(64, 256));
        RunRecorder recorder = new RunRecorder(List.of());
        recorder.onStep(run.perfect(1));

        String svg =
                TypicalStep.of(
                                run.schedule(),
                                RankGrid.pipeline(run.schedule().shape().ranks()),
                                recorder,
                                (costs, _) -> costs)
                        .orElseThrow()
                        .gantt()
                        .file();

        assertThat(svg.length()).isBetween(100_000, 4_000_000);
        assertThat(svg.contains(">rank 56<")).isTrue();
        assertThat(svg.split("<title>", -1)).hasSize(1 + 64); // the optimizer's
    }

    @Test
    void whatTheGanttShowsStandsInATableAsWell() {
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 3));
        RunRecorder recorder = new RunRecorder(List.of());
        recorder.onStep(run.perfect(1));

        String table =
                TypicalStep.of(run.schedule(), RankGrid.pipeline(2), recorder, (costs, _) -> costs)
                        .orElseThrow()
                        .gantt()
                        .table();

        assertThat(table).contains("<summary>The step as a table</summary>");
        String[] rows = table.split("<tr>", -1);
        assertThat(rows).hasSize(2 + 2 * 2); // a head; measured and simulated, of two ranks
        for (int rank = 0; rank < 2; rank++) {
            String row = rows[2 + rank];
            assertThat(row).contains("measured: step 1", "<th scope=\"row\">" + rank + "</th>");
            int at = 0;
            for (var op : run.schedule().program(rank).ops()) {
                String name = OpText.print(op, run.schedule().shape()) + " ";
                assertThat(row.indexOf(name, at)).as(name).isPositive();
                at = row.indexOf(name, at);
            }
            assertThat(rows[4 + rank]).contains("simulated with the same op times");
        }
    }

    /** Drawn of the op times of a quickstart, recorded. */
    @Test
    void theGanttOfTheDocsIsWhatTheProgramDraws() throws IOException {
        Path log = folder.resolve("events.jsonl");
        RunEventLines.writeRecordedQuickstart(log);
        List<RunEvent> events = new ArrayList<>();
        new EventLogReader(log).poll(events::add);
        RunEvent.Began began = only(events, RunEvent.Began.class).getFirst();
        RunRecorder recorder = new RunRecorder(List.of());
        only(events, RunEvent.OpTimes.class).forEach(times -> recorder.onStep(report(times)));

        String svg =
                TypicalStep.of(
                                ScheduleText.parse(began.schedule()),
                                began.grid(),
                                recorder,
                                (costs, _) -> costs)
                        .orElseThrow()
                        .gantt()
                        .file();

        Path drawn =
                Files.writeString(
                        Files.createDirectories(Path.of("target")).resolve("gantt.svg"), svg);
        assertThat(Path.of("..", "docs", "gantt.svg"))
                .as("copy " + drawn + " there")
                .hasContent(svg);
    }

    private static <T extends RunEvent> List<T> only(List<RunEvent> events, Class<T> type) {
        return events.stream().filter(type::isInstance).map(type::cast).toList();
    }

    private static StepReport report(RunEvent.OpTimes times) {
        List<RankStep> ranks = new ArrayList<>();
        for (RunEvent.OpTimes.Rank rank : times.ranks()) {
            ranks.add(
                    RankSteps.of(
                            ranks.size(),
                            nanos(rank.starts()),
                            nanos(rank.ends()),
                            1_000L * rank.updateStart(),
                            1_000L * rank.updateEnd(),
                            1,
                            1));
        }
        long end = ranks.stream().mapToLong(RankStep::updateEndNanos).max().orElseThrow();
        return new StepReport(times.step(), 1, 1, 1, 0, end, ranks);
    }

    private static long[] nanos(int[] micros) {
        return IntStream.of(micros).mapToLong(each -> 1_000L * each).toArray();
    }

    @Test
    void theMeasuredAndTheSimulatedStepShareATimeScale() {
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4));
        RunRecorder recorder = new RunRecorder(List.of());
        recorder.onStep(run.perfect(1));

        String svg =
                TypicalStep.of(
                                run.schedule(),
                                RankGrid.pipeline(run.schedule().shape().ranks()),
                                recorder,
                                (costs, _) -> costs)
                        .orElseThrow()
                        .gantt()
                        .inline();

        List<String> ends =
                svg.lines()
                        .flatMap(line -> List.of(line.split("<", -1)).stream())
                        .filter(element -> element.startsWith("line class=\"end\""))
                        .map(element -> element.replaceAll(".*x1=\"([\\d.]+)\".*", "$1"))
                        .toList();
        assertThat(ends).hasSize(2);
        assertThat(ends.get(0)).isEqualTo(ends.get(1));
    }

    @Test
    void aLongCurveKeepsItsPeaks() {
        double[] steps = IntStream.rangeClosed(1, 100_000).asDoubleStream().toArray();
        double[] losses = new double[steps.length];
        losses[61_234] = 9;
        losses[77_777] = Double.NaN;
        losses[88_888] = -3;

        double[][] points = Thinning.thin(steps, losses, 700);

        assertThat(points[0]).hasSize(1400).isSorted().contains(61_235, 88_889);
        assertThat(points[1]).contains(9).contains(-3).doesNotContain(Double.NaN);
    }

    @Test
    void aChartOfNothingOrOfOneValueIsAChart() {
        for (double[] values : new double[][] {{}, {2.5}, {2.5, 2.5}, {Double.NaN}, {1e30}}) {
            double[] steps = IntStream.rangeClosed(1, values.length).asDoubleStream().toArray();

            String svg =
                    new LineChart(
                                    "title",
                                    "loss",
                                    List.of(new Series("training", 1, Look.LINE, steps, values)),
                                    480,
                                    300)
                            .file();

            assertThat(svg).endsWith("</svg>\n").doesNotContain("NaN", "Infinity");
        }
    }

    @Test
    void ticksAreRoundNumbers() {
        assertThat(AxisTicks.between(0, 117, 6).labels())
                .containsExactly("0", "20", "40", "60", "80", "100");
        assertThat(AxisTicks.between(2.13, 2.87, 4).labels())
                .containsExactly("2.2", "2.4", "2.6", "2.8");
        assertThat(AxisTicks.between(0, 30_000, 3).labels())
                .containsExactly("0", "10k", "20k", "30k");
        assertThat(AxisTicks.between(0.001, 0.0031, 3).labels())
                .containsExactly("0.001", "0.002", "0.003");
    }

    @Test
    void theTypicalStepIsTheMedianOfThoseTraced() {
        SimulatedRun run = SimulatedRun.of("gpipe", PipelineShape.of(2, 4));
        RunRecorder recorder = new RunRecorder(List.of(1L));
        for (int step = 1; step <= 40; step++) {
            recorder.onStep(lasting(run.perfect(step), 1000L * step));
        }

        assertThat(recorder.size()).isEqualTo(16);
        assertThat(recorder.traced()).extracting(StepReport::step).containsExactly(1L, 40L);
        assertThat(recorder.typical().orElseThrow().step()).isEqualTo(32);
    }

    private static StepReport lasting(StepReport report, long nanos) {
        long start = report.startNanos();
        return new StepReport(report.step(), 1, 1, 1, start, start + nanos, report.ranks());
    }

    /** The Gantt chart has every pipeline of a grid, under the numbers of its ranks. */
    @Test
    void everyPipelineIsDrawn() {
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 2, 1));
        RankGrid grid = new RankGrid(2, 1, 1, 2);
        RunRecorder recorder = new RunRecorder(List.of());
        List<RankStep> ranks = new ArrayList<>();
        for (long replica = 1; replica <= 2; replica++) {
            for (RankStep rank : run.noisy(replica).ranks()) {
                ranks.add(
                        RankSteps.of(
                                ranks.size(),
                                rank.opStartNanos(),
                                rank.opEndNanos(),
                                rank.updateStartNanos(),
                                rank.updateEndNanos(),
                                rank.peakBytes(),
                                rank.allocatedHeapBytes()));
            }
        }
        recorder.onStep(new StepReport(1, 2.5, 1, 1, 0, 1, ranks));

        String gantt =
                TypicalStep.of(run.schedule(), grid, recorder, (costs, _) -> costs)
                        .orElseThrow()
                        .gantt()
                        .file();

        assertThat(gantt)
                .contains("measured: step 1, replica 0, ", "measured: step 1, replica 1, ")
                .contains(">rank 0<", ">rank 1<", ">rank 2<", ">rank 3<");
    }
}
