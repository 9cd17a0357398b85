package dev.penstock.benchmarks;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Kills the processes of a training's ranks, one after the other, and prints how long it takes from
 * {@code kill -9} to the next committed step, and how many committed steps are done again.
 *
 * <p>Arguments: {@code --kills N} and names of rows to run; 20 kills of each row without any.
 */
public final class RecoveryBenchmark {
    /**
     * A way to come back.
     *
     * @param settings of section {@code recovery}
     * @param killsPerRun after so many, ranks live in processes that were not started for them
     * @param goalMedian and {@code goalMost}: seconds, 0 for none
     */
    record Row(String name, String settings, int killsPerRun, double goalMedian, double goalMost) {}

    private static final List<Row> ROWS =
            List.of(
                    new Row("mirror+survivor", "mirror = on", 2, 1.5, 3),
                    new Row("checkpoint+spare", "mirror = off, spares = 1", 2, 4, 0),
                    new Row("checkpoint+fresh", "mirror = off", 2, 4, 0));

    private RecoveryBenchmark() {}

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        List<String> words = Arrays.asList(arguments);
        int at = words.indexOf("--kills");
        int kills = at < 0 ? 20 : Integer.parseInt(words.get(at + 1));
        out.printf(
                "4 stage processes on %d cores, seconds from kill -9 to the next committed step%n%n",
                Runtime.getRuntime().availableProcessors());
        out.printf(
                "%-18s %6s %7s %7s %10s %8s %9s %9s %11s%n",
                "from", "kills", "p50", "max", "goal p50", "max", "detect", "resume", "steps lost");
        boolean all = ROWS.stream().noneMatch(row -> words.contains(row.name()));
        for (Row row : ROWS) {
            if (all || words.contains(row.name())) {
                print(out, row, RecoveryMeasurement.of(row, kills));
            }
        }
        out.printf(
                """

                detect: from the last sign of life to the decision to recover; resume: until every rank is open again
                (medians); the rest is the step itself. steps lost: most committed steps that were done again.
                """);
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
