package dev.penstock.benchmarks;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.report.MemoryPlan;
import java.io.PrintStream;
import java.util.List;
import java.util.Locale;

/**
 * Device memory of a rank of 1, 2, 4 and 8 replicas with ZeRO 0 to 3, each in a training of a few
 * steps: by the general formula (bytes per parameter, gradient and optimizer state, each divided
 * where it is sharded), by the proved program, and measured. The exit code is 1 if a rank's memory
 * differs from the prediction by more than 5 %.
 *
 * <p>Arguments: {@code bf16} for parameters that are multiplied in BF16.
 */
public final class ZeroMemoryBenchmark {
    private static final TrainingShape SHAPE = new TrainingShape("zero", 4, 192, 4, 64, 512);
    private static final List<Integer> REPLICAS = List.of(1, 2, 4, 8);
    private static final int STEPS = 2;
    private static final int MOST = 8;
    private static final double TOLERANCE = 0.05;
    private static final List<String> STATE =
            List.of(MemoryUse.PARAMETERS, MemoryUse.GRADIENTS, MemoryUse.OPTIMIZER);
    private static final List<String> TRANSIENT =
            List.of(MemoryUse.GATHERED, MemoryUse.ACCUMULATORS);

    private ZeroMemoryBenchmark() {}

    /**
     * The bytes of the rank whose measured memory differs most from the proved.
     *
     * @param formula of the state alone
     * @param state proved bytes of parameters, gradients and moments
     * @param stateMeasured the same, measured
     * @param passing proved bytes of gathers and accumulators
     * @param passingMeasured the same, measured
     */
    private record Row(
            long formula,
            long state,
            long stateMeasured,
            long passing,
            long passingMeasured,
            long total,
            long totalMeasured) {
        double deviation() {
            return (double) totalMeasured / total - 1;
        }

        static Row of(MemoryPlan plan, RankStep step) {
            return new Row(
                    sum(plan.planned(), STATE),
                    sum(plan.proved(), STATE),
                    sum(step.uses(), STATE),
                    sum(plan.proved(), TRANSIENT),
                    sum(step.uses(), TRANSIENT),
                    plan.total(),
                    step.peakBytes());
        }

        private static long sum(List<MemoryUse> uses, List<String> wanted) {
            return uses.stream()
                    .filter(use -> wanted.contains(use.use()))
                    .mapToLong(MemoryUse::peakBytes)
                    .sum();
        }
    }

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        boolean bf16 = List.of(arguments).contains("bf16");
        out.printf(
                "%-9s %5s | %10s %10s %10s %8s | %10s %10s | %10s %10s %8s%n",
                "replicas",
                "ZeRO",
                "formula",
                "proved",
                "measured",
                "of form.",
                "transient",
                "measured",
                "all",
                "measured",
                "differs");
        boolean holds = true;
        for (int replicas : REPLICAS) {
            int last =
                    replicas == 1
                            ? 0
                            : 3; // without other replicas to divide with, all stages equal ZeRO 0
            for (int stage = 0; stage <= last; stage++) {
                Row row = measure(replicas, stage, bf16);
                holds &= Math.abs(row.deviation()) <= TOLERANCE;
                print(out, replicas, stage, row);
            }
        }
        out.printf(
                """

                KiB of the rank that differs most, %d layers, width %d, vocabulary %d, one stage, %s
                formula: (p + g + o) per parameter, each divided by the replicas where ZeRO shards it
                transient: gathered parameters, and gradients that are about to become shards; all: with activations and buffers
                differs: measured against proved, for everything that the rank ever held
                """,
                SHAPE.layers(), SHAPE.width(), SHAPE.vocabulary(), bf16 ? "bf16" : "float32");
        if (!holds) {
            out.printf("a rank differs by more than %.0f %%%n", 100 * TOLERANCE);
            System.exit(1);
        }
    }

    private static Row measure(int replicas, int stage, boolean bf16) {
        var setup =
                new TrainingMeasurement.Setup(
                        "%d replicas, ZeRO %d".formatted(replicas, stage),
                        SHAPE,
                        STEPS,
                        MOST,
                        MOST,
                        List.of(
                                "parallel.data=" + replicas,
                                "parallel.zero.stage=" + stage,
                                "device.threads=1",
                                "device.precision=" + (bf16 ? "bf16" : "float32")));
        return ShortRun.of(setup, ZeroMemoryBenchmark::worst);
    }

    private static Row worst(RunAssembly assembly, List<StepReport> reports) {
        List<MemoryPlan> plans = assembly.plannedMemory();
        Row worst = null;
        for (RankStep rank : reports.getLast().ranks()) {
            Row row = Row.of(plans.get(rank.rank()), rank);
            if (worst == null || Math.abs(row.deviation()) > Math.abs(worst.deviation())) {
                worst = row;
            }
        }
        if (worst == null) {
            throw new IllegalStateException("a step without ranks");
        }
        return worst;
    }

    private static void print(PrintStream out, int replicas, int stage, Row row) {
        out.printf(
                Locale.ROOT,
                "%-9d %5d | %10.0f %10.0f %10.0f %+7.1f%% | %10.0f %10.0f | %10.0f %10.0f"
                        + " %+7.1f%%%n",
                replicas,
                stage,
                row.formula() / 1024.0,
                row.state() / 1024.0,
                row.stateMeasured() / 1024.0,
                100.0 * (row.stateMeasured() - row.formula()) / row.formula(),
                row.passing() / 1024.0,
                row.passingMeasured() / 1024.0,
                row.total() / 1024.0,
                row.totalMeasured() / 1024.0,
                100 * row.deviation());
        out.flush();
    }
}
