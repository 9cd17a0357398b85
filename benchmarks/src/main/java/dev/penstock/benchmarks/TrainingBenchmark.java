package dev.penstock.benchmarks;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Training steps through the real actors and Aeron: tokens per second, compared with the share of
 * the FMA peak that this machine reaches in the same run, and with PyTorch's figures from the
 * machine on which the goals were measured.
 *
 * <p>Arguments: names of rows to run, such as {@code small/1 llama-medium/2}; without any, all.
 */
public final class TrainingBenchmark {
    /**
     * A row of the table.
     *
     * @param peer tokens per second of the best tuned PyTorch (one stage) or of its best pipeline
     *     of two processes (two stages), on 2 cores of the machine of the goals; 0 where none was
     *     measured
     * @param goal tokens per second to reach on that machine; 0 where there is none: a model of
     *     Llama's shape is to reach the share of the peak that GPT-2's reaches in the same run
     */
    record Row(TrainingShape shape, int stages, boolean bf16, int peer, int goal, int steps) {
        String name() {
            return "%s/%d%s".formatted(shape.name(), stages, bf16 ? "/bf16" : "");
        }

        TrainingMeasurement.Setup setup() {
            int microBatches = stages == 1 ? 1 : 16;
            return new TrainingMeasurement.Setup(
                    name(),
                    shape,
                    steps,
                    stages == 1 ? shape.sequences() : microBatches,
                    microBatches,
                    List.of(
                            "pipeline.stages=" + stages,
                            "device.precision=" + (bf16 ? "bf16" : "float32")));
        }
    }

    private static final TrainingShape SMALL = new TrainingShape("small", 4, 256, 4, 256, 5_000);
    private static final TrainingShape MEDIUM = new TrainingShape("medium", 8, 512, 8, 512, 8_192);
    private static final TrainingShape GPT2 = new TrainingShape("124m", 12, 768, 12, 1_024, 50_257);

    private static final TrainingShape LLAMA_SMALL =
            new TrainingShape("llama-small", 4, 256, 4, 2, 704, 256, 5_000);
    private static final TrainingShape LLAMA_MEDIUM =
            new TrainingShape("llama-medium", 8, 512, 8, 4, 1_408, 512, 8_192);
    private static final TrainingShape LLAMA =
            new TrainingShape("llama-124m", 12, 768, 12, 4, 2_432, 1_024, 50_257);

    private static final List<Row> ROWS =
            List.of(
                    new Row(SMALL, 1, false, 9_580, 11_500, 120),
                    new Row(MEDIUM, 1, false, 1_355, 1_900, 30),
                    new Row(GPT2, 1, false, 332, 490, 8),
                    new Row(SMALL, 2, false, 7_166, 10_500, 60),
                    new Row(MEDIUM, 2, false, 1_337, 1_750, 14),
                    new Row(GPT2, 2, false, 0, 450, 5),
                    new Row(SMALL, 1, true, 12_190, 15_000, 120),
                    new Row(MEDIUM, 1, true, 2_084, 2_800, 30),
                    new Row(GPT2, 1, true, 516, 750, 20),
                    new Row(LLAMA_SMALL, 1, false, 0, 0, 120),
                    new Row(LLAMA_MEDIUM, 1, false, 0, 0, 30),
                    new Row(LLAMA, 1, false, 0, 0, 8),
                    new Row(LLAMA_SMALL, 2, false, 0, 0, 60),
                    new Row(LLAMA_MEDIUM, 2, false, 0, 0, 14),
                    new Row(LLAMA, 2, false, 0, 0, 5),
                    new Row(LLAMA_SMALL, 1, true, 0, 0, 120),
                    new Row(LLAMA_MEDIUM, 1, true, 0, 0, 30),
                    new Row(LLAMA, 1, true, 0, 0, 20));

    private TrainingBenchmark() {}

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        double peak = FmaPeak.gflops(2);
        out.printf(Locale.ROOT, "FMA peak of two threads, F32: %.0f GFLOP/s%n%n", peak);
        out.printf(
                "%-19s %9s %7s %9s %7s %9s %7s %6s %7s %9s %9s%n",
                "shape/stages",
                "tokens/s",
                "goal",
                "of goal",
                "peer",
                "of peer",
                "of peak",
                "bubble",
                "ideal",
                "heap/op",
                "memory");
        String noPeer = missingPeer();
        for (Row row : ROWS) {
            if (arguments.length == 0 || Arrays.asList(arguments).contains(row.name())) {
                TrainingMeasurement found = TrainingMeasurement.of(row.setup());
                print(out, row, found, peak);
                if (noPeer.isEmpty() && row.stages() == 1) {
                    peerRow(out, row, found, peak);
                }
            }
        }
        out.printf(
                """

                one stage: two threads; two stages: one thread each, 1F1B, 16 micro-batches of one sequence
                of peak: floating-point operations of the model over the F32 FMA peak of both threads
                bubble: idle share of the median step; ideal: the simulator's makespan with the measured op times over
                the measured span; heap/op: bytes allocated per op of the busiest rank; memory: measured over planned
                peer, goal: on the machine of the goals (2 cores, AVX-512 at 4.15 GHz, 262 GFLOP/s each)
                """);
        out.println(
                noPeer.isEmpty()
                        ? "PyTorch: compiled, fused attention and AdamW, here and now, two threads; of peer: Penstock's tokens/s over its"
                        : "(no PyTorch figures of this machine: " + noPeer + ")");
    }

    /** Returns why there is no PyTorch to compare with; empty if there is one. */
    private static String missingPeer() {
        try {
            PyTorchPeer.version("cpu");
            return "";
        } catch (PyTorchPeer.Missing e) {
            return "" + e.getMessage();
        }
    }

    private static void peerRow(PrintStream out, Row row, TrainingMeasurement ours, double peak) {
        try {
            PyTorchPeer.Measured found =
                    PyTorchPeer.measure(
                            "cpu", row.bf16(), row.shape(), row.shape().sequences(), row.steps());
            double rate = found.sequences() * row.shape().context() / found.stepSeconds();
            double ratio = ours.tokensPerSecond() / rate;
            out.printf(
                    Locale.ROOT,
                    "%-19s %9.0f %7s %9s %7s %9s %6.0f%%%n",
                    "  PyTorch",
                    rate,
                    "",
                    "",
                    "",
                    "%.2fx".formatted(ratio),
                    100 * ours.flopsPerSecond() / ratio / (peak * 1e9));
        } catch (PyTorchPeer.Missing e) {
            out.printf(Locale.ROOT, "%-19s does not run: %s%n", "  PyTorch", "" + e.getMessage());
        }
        out.flush();
    }

    private static void print(PrintStream out, Row row, TrainingMeasurement found, double peak) {
        double share = found.flopsPerSecond() / (peak * 1e9);
        out.printf(
                Locale.ROOT,
                "%-19s %9.0f %7s %9s %7s %9s %6.0f%% %5.1f%% %6.1f%% %9.0f %8.0f%%%n",
                row.name(),
                found.tokensPerSecond(),
                row.goal() == 0 ? "-" : Integer.toString(row.goal()),
                row.goal() == 0
                        ? "-"
                        : "%.0f%%".formatted(100 * found.tokensPerSecond() / row.goal()),
                row.peer() == 0 ? "-" : Integer.toString(row.peer()),
                row.peer() == 0 ? "-" : "%.2fx".formatted(found.tokensPerSecond() / row.peer()),
                100 * share,
                100 * found.bubble(),
                100 * found.efficiency(),
                found.heapBytesPerOp(),
                100 * found.measuredOverPlanned());
        out.flush();
    }
}
