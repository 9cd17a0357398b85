package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.evaluation.TaskResult;
import java.util.ArrayList;
import java.util.List;

/** Figures of a task in columns; beside every row the protocol and the context. */
final class ResultTable {
    private ResultTable() {}

    /** Returns the lines, a heading first. */
    static List<String> lines(String protocol, int context, List<TaskResult> results) {
        List<List<String>> rows = new ArrayList<>();
        List<String> heading = new ArrayList<>(List.of("", "protocol", "context"));
        results.getLast().measures().keySet().forEach(name -> heading.add(TaskResult.words(name)));
        rows.add(heading);
        for (TaskResult result : results) {
            List<String> row = new ArrayList<>(List.of(result.file(), protocol, "" + context));
            result.measures().values().forEach(value -> row.add(TaskResult.shown(value)));
            rows.add(row);
        }
        int[] widths = new int[heading.size()];
        for (List<String> row : rows) {
            for (int i = 0; i < widths.length; i++) {
                widths[i] = Math.max(widths[i], row.get(i).length());
            }
        }
        return rows.stream().map(row -> line(row, widths)).toList();
    }

    private static String line(List<String> row, int[] widths) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < widths.length; i++) {
            String form = i < 2 ? "%-" + widths[i] + "s" : "%" + widths[i] + "s";
            line.append(i == 0 ? "" : "  ").append(form.formatted(row.get(i)));
        }
        return line.toString();
    }
}
