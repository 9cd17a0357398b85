package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.RunKeeper;
import dev.penstock.runtime.runs.LocalRun;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Runs of this machine, for people and for programs.
 *
 * @param now to which their ages refer
 */
record RunTable(List<LocalRun> runs, Instant now) {
    private static final List<String> HEAD = List.of("run", "state", "step", "loss", "size", "age");
    private static final int STEPS = 2;

    /**
     * A run in JSON.
     *
     * @param loss of the last step, nats per token
     * @param changed when it last did something, ISO 8601, UTC
     * @param process that trains it, on its own host
     */
    record Row(
            String directory,
            String name,
            String state,
            long step,
            long steps,
            @Nullable Double loss,
            long bytes,
            String changed,
            @Nullable Long process) {}

    List<Row> rows() {
        return runs.stream()
                .map(
                        run ->
                                new Row(
                                        run.path().toString(),
                                        run.name(),
                                        state(run),
                                        run.step(),
                                        run.steps(),
                                        Double.isFinite(run.loss().orElse(Double.NaN))
                                                ? run.loss().getAsDouble()
                                                : null,
                                        run.bytes(),
                                        run.changed().toString(),
                                        run.keeper().map(RunKeeper::pid).orElse(null)))
                .toList();
    }

    /** A line for each, under a line of headings, in columns. */
    List<String> lines() {
        List<List<String>> cells = new ArrayList<>(List.of(HEAD));
        runs.forEach(run -> cells.add(cells(run)));
        int[] widths =
                IntStream.range(0, HEAD.size())
                        .map(
                                i ->
                                        cells.stream()
                                                .mapToInt(row -> row.get(i).length())
                                                .max()
                                                .orElse(0))
                        .toArray();
        return cells.stream().map(row -> line(row, widths)).toList();
    }

    private List<String> cells(LocalRun run) {
        return List.of(
                // names come from outside and must not move the terminal's cursor
                run.path().toString().replaceAll("\\p{Cntrl}", "?"),
                state(run) + run.keeper().map(keeper -> " (" + keeper.told() + ")").orElse(""),
                run.steps() == 0 ? "" + run.step() : run.step() + " of " + run.steps(),
                Quantities.loss(run.loss().orElse(Double.NaN)),
                Quantities.bytes(run.bytes()),
                age(Duration.between(run.changed(), now)));
    }

    private static String line(List<String> row, int[] widths) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < widths.length; i++) {
            String space = " ".repeat(widths[i] - row.get(i).length());
            line.append(i < STEPS ? row.get(i) + space : space + row.get(i)).append("  ");
        }
        return line.toString().stripTrailing();
    }

    private static String state(LocalRun run) {
        return run.state().name().toLowerCase(Locale.ROOT);
    }

    /** In the largest unit of which there are two. */
    private static String age(Duration age) {
        if (age.toDays() >= 2) {
            return age.toDays() + " days";
        }
        if (age.toHours() >= 2) {
            return age.toHours() + " h";
        }
        if (age.toMinutes() >= 2) {
            return age.toMinutes() + " min";
        }
        return Math.max(0, age.toSeconds()) + " s";
    }
}
