package dev.penstock.benchmarks;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * The same training steps divided in every way between two ranks of one thread each, beside one
 * device with both threads, in the same run: what stages, shards, context parts, replicas and ZeRO
 * cost in time and hold in memory.
 *
 * <p>Arguments: words that the names of the wanted rows contain; all without any.
 */
public final class LayoutBenchmark {
    private static final TrainingShape MEDIUM = new TrainingShape("medium", 8, 512, 8, 512, 8_192);
    private static final int STEPS = 14;
    private static final int MICRO_BATCHES = 8;

    private record Row(String name, List<String> settings) {}

    private static final List<Row> ROWS =
            List.of(
                    new Row("one device, 2 threads", List.of()),
                    new Row("2 stages, 1f1b", List.of("pipeline.stages=2")),
                    new Row("2 tensor shards", List.of("parallel.tensor=2")),
                    new Row("2 context parts", List.of("parallel.context=2")),
                    new Row("2 replicas", replicas(0)),
                    new Row("2 replicas, ZeRO-1", replicas(1)),
                    new Row("2 replicas, ZeRO-2", replicas(2)),
                    new Row("2 replicas, ZeRO-3, step", replicas(3, "residency=step")),
                    new Row("2 replicas, ZeRO-3, layer, 0 ahead", layerByLayer(0)),
                    new Row("2 replicas, ZeRO-3, layer, 1 ahead", layerByLayer(1)),
                    new Row("2 replicas, ZeRO-3, layer, 2 ahead", layerByLayer(2)));

    private LayoutBenchmark() {}

    private static List<String> replicas(int zero, String... more) {
        return Stream.concat(
                        Stream.of("parallel.data=2", "parallel.zero.stage=" + zero),
                        Arrays.stream(more).map(each -> "parallel.zero." + each))
                .toList();
    }

    private static List<String> layerByLayer(int ahead) {
        return replicas(3, "residency=layer", "prefetch-layers=" + ahead);
    }

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        out.printf(
                "medium (8 layers, width 512, context 512), %d sequences in %d micro-batches,"
                        + " float32%n%n",
                MICRO_BATCHES, MICRO_BATCHES);
        out.printf(
                "%-38s %9s %10s %14s %12s %14s%n",
                "layout", "ms/step", "tokens/s", "of one device", "of ZeRO-0", "MiB of a rank");
        double alone = Double.NaN;
        double replicas = Double.NaN;
        for (Row row : ROWS) {
            boolean wanted =
                    arguments.length == 0
                            || Arrays.stream(arguments).anyMatch(row.name()::contains);
            if (!wanted) {
                continue;
            }
            TrainingMeasurement found =
                    TrainingMeasurement.of(
                            new TrainingMeasurement.Setup(
                                    row.name(),
                                    MEDIUM,
                                    STEPS,
                                    MICRO_BATCHES,
                                    MICRO_BATCHES,
                                    row.settings()));
            double seconds = found.stepSeconds();
            alone = row.settings().isEmpty() ? seconds : alone;
            replicas = row.settings().equals(replicas(0)) ? seconds : replicas;
            out.printf(
                    Locale.ROOT,
                    "%-38s %9.0f %10.0f %14.2f %12s %14.0f%n",
                    row.name(),
                    seconds * 1e3,
                    found.tokensPerSecond(),
                    alone / seconds,
                    row.name().contains("replicas") ? ratio(replicas / seconds) : "-",
                    found.peakBytes() / (double) (1 << 20));
            out.flush();
        }
        out.printf(
                "%nof: speed over that of the row; one thread per rank, two for one device; median"
                        + " of the second half of %d steps%n",
                STEPS);
    }

    private static String ratio(double value) {
        return String.format(Locale.ROOT, "%.2f", value);
    }
}
