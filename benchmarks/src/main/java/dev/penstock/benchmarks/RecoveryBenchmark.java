package dev.penstock.benchmarks;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Kills the processes of a training's ranks, one after the other, and prints how long it takes from
 * {@code kill -9} to the next committed step, and how many committed steps are done again.
 *
 * <p>Arguments: {@code --kills N}, default 20; names of rows to run, default all; {@code --goodput
 * SECONDS} measures instead how much of the training's speed is left with a kill every so many
 * seconds.
 */
public final class RecoveryBenchmark {
    /**
     * A form of recovery.
     *
     * @param spares warm processes that wait when a rank is killed
     * @param goalMedian and {@code goalMost}: seconds, 0 for none
     */
    record Row(String name, boolean mirror, int spares, double goalMedian, double goalMost) {
        /** Of section {@code recovery}. */
        String settings() {
            return "mirror = %s, spares = %d".formatted(mirror, spares);
        }
    }

    private static final List<Row> ROWS =
            List.of(
                    new Row("mirror+survivor", true, 0, 1.5, 3),
                    new Row("mirror+spare", true, 1, 1.5, 3),
                    new Row("checkpoint+spare", false, 1, 2.5, 0),
                    new Row("checkpoint+fresh", false, 0, 4, 0));

    private RecoveryBenchmark() {}

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        List<String> words = Arrays.asList(arguments);
        List<Row> named = ROWS.stream().filter(row -> words.contains(row.name())).toList();
        List<Row> rows = named.isEmpty() ? ROWS : named;
        int at = words.indexOf("--goodput");
        if (at < 0) {
            printTimes(out, rows, number(words, "--kills", 20));
        } else {
            printGoodput(out, rows, number(words, "--goodput", 60));
        }
    }

    private static int number(List<String> words, String option, int otherwise) {
        int at = words.indexOf(option) + 1;
        return at == 0 || at == words.size() ? otherwise : Integer.parseInt(words.get(at));
    }

    private static void printTimes(PrintStream out, List<Row> rows, int kills) {
        out.printf(
                "4 stage processes on %d cores, seconds from kill -9 to the next committed step%n%n",
                Runtime.getRuntime().availableProcessors());
        out.printf(
                "%-18s %6s %7s %7s %10s %8s %9s %9s %11s%n",
                "from", "kills", "p50", "max", "goal p50", "max", "detect", "resume", "steps lost");
        for (Row row : rows) {
            print(out, row, RecoveryMeasurement.of(row, kills));
        }
        out.printf(
                """
                %-18s      - 1.2 to 5.2 s to the first step                          6 to 7

                detect: from the last sign of life to the decision to recover; resume: until every rank is open again
                (medians); the rest is the step itself. steps lost: maximum of committed steps that were done again.
                With mirrors a rank continues where its mirror is, so a spare process changes nothing there.
                torchrun: PyTorch's elastic launcher with 2 workers on a similar machine, measured separately.
                """,
                "torchrun");
    }

    private static void printGoodput(PrintStream out, List<Row> rows, int seconds) {
        out.printf(
                "4 stage processes on %d cores, one of them killed every %d s, %d times%n%n",
                Runtime.getRuntime().availableProcessors(), seconds, KilledTraining.MOST_KILLS);
        out.printf("%-18s %12s %14s %9s%n", "from", "calm steps/s", "killed steps/s", "goodput");
        for (Row row : rows) {
            RecoveryGoodput goodput = RecoveryGoodput.of(row, seconds);
            out.printf(
                    Locale.ROOT,
                    "%-18s %12.2f %14.2f %7.1f %%%n",
                    row.name(),
                    goodput.calm(),
                    goodput.killed(),
                    100 * goodput.share());
            out.flush();
        }
    }

    private static void print(PrintStream out, Row row, List<RecoveryMeasurement> kills) {
        out.printf(
                Locale.ROOT,
                "%-18s %6d %7.2f %7.2f %10s %8s %9.2f %9.2f %11d%n",
                row.name(),
                kills.size(),
                median(kills.stream().mapToDouble(RecoveryMeasurement::seconds).toArray()),
                kills.stream().mapToDouble(RecoveryMeasurement::seconds).max().orElse(0),
                goal(row.goalMedian()),
                goal(row.goalMost()),
                median(kills.stream().mapToDouble(RecoveryMeasurement::detectSeconds).toArray()),
                median(kills.stream().mapToDouble(RecoveryMeasurement::resumeSeconds).toArray()),
                kills.stream().mapToLong(RecoveryMeasurement::stepsLost).max().orElse(0));
        out.flush();
    }

    private static String goal(double seconds) {
        return seconds == 0 ? "-" : String.format(Locale.ROOT, "%.1f", seconds);
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values.length == 0 ? 0 : values[(values.length - 1) / 2];
    }
}
