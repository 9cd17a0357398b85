package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.events.EventLog;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.metrics.ConfiguredSteps;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.simulate.UnitCosts;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Measures what the event log costs the thread that drives a run, per step and as a share of a step
 * whose micro-batches take a stage 10 ms, and how much it writes. Comparing a step with its ideal
 * is not included: the metrics need that anyway. The log's own thread makes the lines while this
 * one waits for the next step; here the next step comes at once.
 */
public final class EventLogBenchmark {
    private static final int WARM_UP = 200;
    private static final int STEPS = 1000;
    private static final int OP_TIMES_EVERY = 50;
    private static final double UNIT_NANOS = 10e6;

    private EventLogBenchmark() {}

    /** Prints the table. */
    public static void main(String[] arguments) throws IOException {
        print(System.out);
    }

    private static void print(PrintStream out) throws IOException {
        out.println(
                "| ranks x micro-batches | per step | of a step | longest | bytes per" + " step |");
        out.println("|---|---|---|---|---|");
        for (int[] shape : new int[][] {{2, 8}, {4, 8}, {8, 32}, {64, 256}}) {
            out.println(row(shape[0], shape[1]));
        }
    }

    private static String row(int ranks, int microBatches) throws IOException {
        Schedule schedule =
                Lowering.lower(Generators.generate("1f1b", PipelineShape.of(ranks, microBatches)));
        Path file = Files.createTempFile("events", ".jsonl");
        long sum = 0;
        long longest = 0;
        try {
            var meter = new PipelineMeter(schedule);
            List<RankStep> times = times(schedule);
            try (var log =
                    new EventLog(
                            file,
                            began(schedule),
                            meter,
                            new ConfiguredSteps(StepTokens.always(1024), _ -> 1e-3, ""),
                            OP_TIMES_EVERY,
                            InstantSource.system())) {
                for (int step = 1; step <= WARM_UP + STEPS; step++) {
                    var report = new StepReport(step, 2, 1, 1, 0, 1, times);
                    meter.measure(report);
                    long start = System.nanoTime();
                    log.onStep(report);
                    long nanos = System.nanoTime() - start;
                    if (step > WARM_UP) {
                        sum += nanos;
                        longest = Math.max(longest, nanos);
                    }
                }
            }
            return String.format(
                    Locale.ROOT,
                    "| %d x %d | %.1f us | %.3f %% | %.2f ms | %,d |",
                    ranks,
                    microBatches,
                    sum / 1e3 / STEPS,
                    100.0 * sum / STEPS / (UNIT_NANOS * (ranks + microBatches - 1)),
                    longest / 1e6,
                    Files.size(file) / (WARM_UP + STEPS));
        } finally {
            Files.deleteIfExists(file);
        }
    }

    private static RunEvent.Began began(Schedule schedule) {
        return new RunEvent.Began(
                0,
                RunEvent.VERSION,
                "benchmark",
                0,
                WARM_UP + STEPS,
                2048,
                1,
                ScheduleText.print(schedule),
                RankGrid.pipeline(schedule.programs().size()),
                List.of(),
                "",
                Map.of(),
                "");
    }

    private static List<RankStep> times(Schedule schedule) {
        Timeline timeline = ScheduleSimulator.simulate(schedule, UnitCosts.defaults());
        List<RankStep> ranks = new ArrayList<>();
        for (int rank = 0; rank < schedule.programs().size(); rank++) {
            int ops = timeline.opsRun(rank);
            long[] starts = new long[ops];
            long[] ends = new long[ops];
            for (int i = 0; i < ops; i++) {
                starts[i] = timeline.startNanos(rank, i) * 1000;
                ends[i] = timeline.endNanos(rank, i) * 1000;
            }
            ranks.add(
                    new RankStep(
                            rank,
                            starts,
                            ends,
                            0,
                            0,
                            1 << 20,
                            List.of(),
                            0,
                            List.of(),
                            StepTraffic.NOTHING,
                            new long[0]));
        }
        return ranks;
    }
}
