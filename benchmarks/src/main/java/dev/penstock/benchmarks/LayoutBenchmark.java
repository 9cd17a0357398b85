package dev.penstock.benchmarks;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The same training steps divided in every way between two ranks of one thread each, compared with
 * one device with both threads, in the same run: what stages, shards, context parts, replicas and
 * ZeRO cost in time and hold in memory.
 *
 * <p>All rows run in turn, {@value #ROUNDS} times over, and ratios are taken within a round: if the
 * machine's speed drifts, it drifts for all of them.
 *
 * <p>Arguments: words that the names of the wanted rows contain; without any, all rows. The rows
 * that the ratios refer to always run.
 */
public final class LayoutBenchmark {
    private static final TrainingShape SHAPE = new TrainingShape("layout", 6, 384, 6, 256, 4_096);
    private static final int STEPS = 12;
    private static final int MICRO_BATCHES = 8;
    private static final int ROUNDS = 3;

    private record Row(String name, List<String> settings) {}

    private static final Row ALONE = new Row("one device, 2 threads", List.of());
    private static final Row ZERO_0 = new Row("2 replicas", replicas(0));
    private static final List<Row> ROWS =
            List.of(
                    ALONE,
                    new Row("2 stages, 1f1b", List.of("pipeline.stages=2")),
                    new Row("2 tensor shards", List.of("parallel.tensor=2")),
                    new Row("2 context parts", List.of("parallel.context=2")),
                    ZERO_0,
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
        List<Row> rows = ROWS.stream().filter(row -> wanted(row, arguments)).toList();
        Map<Row, List<TrainingMeasurement>> found = new LinkedHashMap<>();
        for (int round = 0; round < ROUNDS; round++) {
            for (Row row : rows) {
                System.err.printf("round %d of %d: %s%n", round + 1, ROUNDS, row.name());
                found.computeIfAbsent(row, _ -> new ArrayList<>()).add(measure(row));
            }
        }
        out.printf(
                "%d layers, width %d, context %d, %d sequences in %d micro-batches, float32%n%n",
                SHAPE.layers(), SHAPE.width(), SHAPE.context(), MICRO_BATCHES, MICRO_BATCHES);
        out.printf(
                "%-38s %9s %10s %20s %20s %14s%n",
                "layout", "ms/step", "tokens/s", "of one device", "of ZeRO-0", "MiB of a rank");
        List<TrainingMeasurement> alone = found.getOrDefault(ALONE, List.of());
        List<TrainingMeasurement> zero0 = found.getOrDefault(ZERO_0, List.of());
        found.forEach(
                (row, rounds) ->
                        out.printf(
                                Locale.ROOT,
                                "%-38s %9.0f %10.0f %20s %20s %14.0f%n",
                                row.name(),
                                median(rounds, TrainingMeasurement::stepSeconds) * 1e3,
                                median(rounds, TrainingMeasurement::tokensPerSecond),
                                ratio(alone, rounds),
                                row.name().contains("replicas") ? ratio(zero0, rounds) : "-",
                                rounds.getFirst().peakBytes() / (double) (1 << 20)));
        out.printf(
                """

                of: speed over that of the row in the same round, median (least to most) of %d rounds; one thread
                per rank, two for one device; a round's time is the median of the second half of %d steps
                """,
                ROUNDS, STEPS);
    }

    private static boolean wanted(Row row, String... words) {
        return words.length == 0
                || row.equals(ALONE)
                || row.equals(ZERO_0)
                || Arrays.stream(words).anyMatch(row.name()::contains);
    }

    private static TrainingMeasurement measure(Row row) {
        return TrainingMeasurement.of(
                new TrainingMeasurement.Setup(
                        row.name(), SHAPE, STEPS, MICRO_BATCHES, MICRO_BATCHES, row.settings()));
    }

    private static double median(
            List<TrainingMeasurement> rounds, ToDoubleFunction<TrainingMeasurement> figure) {
        return rounds.stream()
                .mapToDouble(figure)
                .sorted()
                .skip(rounds.size() / 2)
                .findFirst()
                .orElseThrow();
    }

    private static String ratio(List<TrainingMeasurement> of, List<TrainingMeasurement> rounds) {
        double[] sorted =
                IntStream.range(0, rounds.size())
                        .mapToDouble(i -> of.get(i).stepSeconds() / rounds.get(i).stepSeconds())
                        .sorted()
                        .toArray();
        return String.format(
                Locale.ROOT,
                "%.2f (%.2f-%.2f)",
                sorted[sorted.length / 2],
                sorted[0],
                sorted[sorted.length - 1]);
    }
}
