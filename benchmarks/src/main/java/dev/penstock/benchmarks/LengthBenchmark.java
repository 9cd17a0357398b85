package dev.penstock.benchmarks;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.lengths.LengthCosts;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/**
 * Texts of log-normal lengths, one in a row: micro-batches as long as their longest row beside rows
 * that are all padded to the context, in the same run, on one stage and on two. The same texts are
 * in the same steps of all rows, so the tokens that count are the same.
 *
 * <p>All rows run in turn, several times over, and ratios are taken within a round: if the
 * machine's speed drifts, it drifts for all of them.
 *
 * <p>Arguments: the number of rounds, 3 unless given.
 */
public final class LengthBenchmark {
    private static final int CONTEXT = 256;
    private static final int SEQUENCES = 32;
    private static final int MICRO_BATCHES = 8;
    private static final int STEPS = 12;
    private static final int TEXTS = 4_000;

    /** Of the logarithm of a text's length. */
    private static final double MEAN = Math.log(64);

    private static final double DEVIATION = 0.8;

    /**
     * @param padded the row that the ratios refer to
     */
    private record Row(String name, String padded, List<String> settings) {}

    private static final List<Row> ROWS =
            IntStream.rangeClosed(1, 2).boxed().flatMap(s -> rows(s).stream()).toList();

    /**
     * @param countedPerSecond tokens that count, in the best step of the second half: others use
     *     the same processors
     * @param stepSeconds of that step
     * @param simulatedSpeed of a step beside one whose rows are all padded
     */
    private record Measured(double countedPerSecond, double stepSeconds, double simulatedSpeed) {}

    private LengthBenchmark() {}

    private static List<Row> rows(int stages) {
        String where = stages == 1 ? "one stage, " : stages + " stages, ";
        String padded = where + "padded";
        String layout = "pipeline.stages=" + stages;
        List<Row> rows = new ArrayList<>();
        rows.add(new Row(padded, padded, List.of(layout, "data.packing=padded")));
        List<String> arrangements =
                stages == 1
                        ? List.of("hill")
                        : List.of("hill", "valley", "rising", "falling", "simulated");
        for (String each : arrangements) {
            rows.add(
                    new Row(
                            where + "lengths, " + each,
                            padded,
                            List.of(layout, "data.packing=lengths", "batch.arrangement=" + each)));
        }
        return rows;
    }

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        int rounds = arguments.length == 0 ? 3 : Integer.parseInt(arguments[0]);
        Map<String, List<Measured>> found = new LinkedHashMap<>();
        for (int round = 0; round < rounds; round++) {
            for (Row row : ROWS) {
                System.err.printf("round %d of %d: %s%n", round + 1, rounds, row.name());
                Measured measured =
                        ShortRun.of(
                                row.name(),
                                row.settings(),
                                LengthBenchmark::configuration,
                                LengthBenchmark::summary);
                found.computeIfAbsent(row.name(), _ -> new ArrayList<>()).add(measured);
            }
        }
        int[] lengths = lengths();
        out.printf(
                Locale.ROOT,
                "texts of %.0f tokens on average, context %d, %d rows in %d micro-batches, float32%n%n",
                Arrays.stream(lengths).map(n -> Math.min(n, CONTEXT)).average().orElseThrow(),
                CONTEXT,
                SEQUENCES,
                MICRO_BATCHES);
        out.printf(
                "%-30s %9s %18s %20s %10s%n",
                "rows", "ms/step", "counted tokens/s", "of padded", "simulated");
        for (Row row : ROWS) {
            List<Measured> all = found.getOrDefault(row.name(), List.of());
            out.printf(
                    Locale.ROOT,
                    "%-30s %9.0f %18.0f %20s %10.2f%n",
                    row.name(),
                    median(all, Measured::stepSeconds) * 1e3,
                    median(all, Measured::countedPerSecond),
                    ratio(found.getOrDefault(row.padded(), List.of()), all),
                    median(all, Measured::simulatedSpeed));
        }
        out.printf(
                """

                of padded: speed over that of the padded row in the same round, median (least to most) of %d rounds;
                simulated: the same of the simulated steps, by the FLOPs of every micro-batch;
                one thread per rank, two for one stage; of a round the best of the last half of %d steps counts
                """,
                rounds, STEPS);
    }

    private static double median(List<Measured> rounds, ToDoubleFunction<Measured> figure) {
        double[] sorted = rounds.stream().mapToDouble(figure).sorted().toArray();
        return sorted[sorted.length / 2];
    }

    private static String ratio(List<Measured> padded, List<Measured> rounds) {
        double[] sorted =
                IntStream.range(0, rounds.size())
                        .mapToDouble(
                                i ->
                                        rounds.get(i).countedPerSecond()
                                                / padded.get(i).countedPerSecond())
                        .sorted()
                        .toArray();
        return String.format(
                Locale.ROOT,
                "%.2f (%.2f-%.2f)",
                sorted[sorted.length / 2],
                sorted[0],
                sorted[sorted.length - 1]);
    }

    private static int[] lengths() {
        var random = new Random(7);
        return IntStream.range(0, TEXTS)
                .map(_ -> (int) Math.exp(MEAN + DEVIATION * random.nextGaussian()) + 1)
                .toArray();
    }

    private static Path configuration(Path directory) throws IOException {
        var random = new Random(11);
        StringBuilder lines = new StringBuilder();
        for (int length : lengths()) {
            lines.append("{\"text\": \"");
            random.ints(length, 'a', 'z' + 1).forEach(letter -> lines.append((char) letter));
            lines.append("\"}\n");
        }
        Files.writeString(directory.resolve("texts.jsonl"), lines);
        return Files.writeString(
                directory.resolve("benchmark.conf"),
                """
                run { name = benchmark, steps = %d, directory = runs }
                model { context = %d, width = 256, layers = 4, heads = 4 }
                data { source = "texts.jsonl", format = jsonl }
                batch { sequences = %d, micro-batches = %d }
                optimizer { learning-rate = 1e-4, warmup-steps = 0 }
                checkpoint { every = 0 }
                evaluation { every = 0 }
                """
                        .formatted(STEPS, CONTEXT, SEQUENCES, MICRO_BATCHES));
    }

    private static Measured summary(RunAssembly assembly, List<StepReport> reports) {
        List<StepReport> steady = reports.subList(reports.size() / 2, reports.size());
        double rate = 0;
        double seconds = 0;
        double simulated = 0;
        double padded = 0;
        for (StepReport step : steady) {
            double took = (step.endNanos() - step.startNanos()) / 1e9;
            double ofStep = counted(assembly.data(), step.step()) / took;
            seconds = ofStep > rate ? took : seconds;
            rate = Math.max(rate, ofStep);
            simulated += makespan(assembly, lengths(assembly.data(), step.step()));
            padded +=
                    makespan(
                            assembly,
                            IntStream.generate(() -> CONTEXT).limit(MICRO_BATCHES).toArray());
        }
        return new Measured(rate, seconds, padded / simulated);
    }

    private static long counted(BatchSource data, long step) {
        byte[] marks = new byte[SEQUENCES / MICRO_BATCHES * (CONTEXT + 1)];
        long count = 0;
        for (int m = 0; m < MICRO_BATCHES; m++) {
            data.marks(StepKind.TRAIN, step, m, marks);
            for (int i = 0; i < marks.length; i++) {
                count += i % (CONTEXT + 1) > 0 && data.counts(marks[i]) ? 1 : 0;
            }
        }
        return count;
    }

    private static int[] lengths(BatchSource data, long step) {
        return IntStream.range(0, MICRO_BATCHES)
                .map(m -> data.tokens(StepKind.TRAIN, step, m, CONTEXT))
                .toArray();
    }

    private static long makespan(RunAssembly assembly, int[] tokens) {
        Schedule schedule = assembly.plan().training();
        GptSettings model = assembly.model();
        CostModel whole = LengthCosts.whole(model.shape(), model.partition());
        return ScheduleSimulator.simulate(
                        schedule, new LengthCosts(whole, model.shape(), model.partition(), tokens))
                .makespanNanos();
    }
}
