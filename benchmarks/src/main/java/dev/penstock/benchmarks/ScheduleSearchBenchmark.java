package dev.penstock.benchmarks;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.BubbleReport;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.io.PrintStream;
import java.util.List;
import java.util.Locale;

/**
 * The cost of searching for an order, and the gain of the search over hand-made orders: the
 * zero-bubble family with the costs that its paper measured for 28.3B parameters on 32 stages.
 */
final class ScheduleSearchBenchmark {
    private static final OpCosts COSTS = new OpCosts(10_400_000, 10_200_000, 7_700_000, 410_000);
    private static final List<String> KINDS = List.of("1f1b", "zb-h1", "zb-1p", "zb-h2", "zb-2p");

    private final PrintStream out;

    ScheduleSearchBenchmark(PrintStream out) {
        this.out = out;
    }

    void run() {
        out.printf(
                "%n%-11s %-7s %9s %10s %8s %8s %6s%n",
                "ranks x mb", "kind", "generate", "makespan", "bubble", "in span", "peak");
        for (PipelineShape shape : List.of(PipelineShape.of(32, 96), PipelineShape.of(64, 512))) {
            KINDS.forEach(kind -> row(kind, shape));
        }
        out.printf(
                """

                generate: seconds of CPU time; bubble: idle share of all ranks until the barrier; in span: the largest idle share of a
                rank between its first and its last op; peak: micro-batches that a rank holds; the limit of zb-1p is 1 per rank, of zb-2p 2
                goal for a search of 64x512: 5 s
                """);
    }

    private void row(String kind, PipelineShape shape) {
        long start = ScheduleBenchmark.cpuNanos();
        Schedule schedule =
                Generators.generate(kind, shape, GenerateOptions.defaults().withCosts(COSTS));
        double seconds = (ScheduleBenchmark.cpuNanos() - start) / 1e9;
        BubbleReport bubble = ScheduleSimulator.simulate(schedule, costModel()).bubble();
        double inSpan =
                bubble.ranks().stream()
                        .mapToDouble(
                                rank ->
                                        (double) rank.idleInSpanNanos()
                                                / (rank.busyNanos() + rank.idleInSpanNanos()))
                        .max()
                        .orElse(0);
        out.printf(
                Locale.ROOT,
                "%-11s %-7s %7.2f s %8.3f s %7.1f%% %7.1f%% %6d%n",
                shape.ranks() + "x" + shape.microBatches(),
                kind,
                seconds,
                bubble.makespanNanos() / 1e9,
                100 * bubble.bubbleShare(),
                100 * inSpan,
                MemoryProfile.of(schedule, PassKind.TRAINING).peakUnits());
        out.flush();
    }

    private static CostModel costModel() {
        return CostModel.split(
                COSTS.forwardNanos(),
                COSTS.backwardInputNanos(),
                COSTS.backwardWeightNanos(),
                COSTS.communicationNanos());
    }
}
