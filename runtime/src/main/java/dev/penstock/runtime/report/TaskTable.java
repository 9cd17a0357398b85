package dev.penstock.runtime.report;

import dev.penstock.runtime.evaluation.TaskResult;
import dev.penstock.runtime.metrics.TaskMetrics;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** What a run's checkpoints were measured by while it trained. */
final class TaskTable {
    private TaskTable() {}

    /** What figures have to share to be compared. */
    private record Heading(String task, String protocol, String data, int context) {
        static Heading of(TaskMetrics line) {
            return new Heading(line.task(), line.protocol(), line.data(), line.context());
        }

        String name() {
            return "%s by %s, %s".formatted(task, protocol, data);
        }

        String window() {
            return context > 0 ? ", context " + context : "";
        }
    }

    /** Lines of the same task, in the order of steps. */
    private static Map<Heading, List<TaskMetrics>> byTask(List<TaskMetrics> tasks) {
        return tasks.stream()
                .collect(
                        Collectors.groupingBy(
                                Heading::of, LinkedHashMap::new, Collectors.toList()));
    }

    /** The last figures of each task. */
    static List<TaskMetrics> last(List<TaskMetrics> tasks) {
        return byTask(tasks).values().stream().map(List::getLast).toList();
    }

    /** One line for each task: its last figures. */
    static List<String> lines(List<TaskMetrics> tasks) {
        List<String> lines = new ArrayList<>();
        byTask(tasks)
                .forEach(
                        (heading, measured) ->
                                lines.add(
                                        "%s, after step %d%s: %s"
                                                .formatted(
                                                        heading.name(),
                                                        measured.getLast().step(),
                                                        heading.window(),
                                                        told(measured.getLast()))));
        return lines;
    }

    private static String told(TaskMetrics task) {
        return task.measures().entrySet().stream()
                .map(
                        measure ->
                                TaskResult.words(measure.getKey())
                                        + " "
                                        + TaskResult.shown(measure.getValue()))
                .collect(Collectors.joining(", "));
    }

    /** A table for each task, a row for each step. */
    static String of(List<TaskMetrics> tasks) {
        StringBuilder tables = new StringBuilder();
        byTask(tasks)
                .forEach(
                        (heading, measured) -> {
                            tables.append(
                                    "<h3>%s</h3>\n"
                                            .formatted(
                                                    Markup.escape(
                                                            heading.name() + heading.window())));
                            tables.append("<div class=\"scroll\"><table><tr><th>step</th>");
                            measured.getLast()
                                    .measures()
                                    .keySet()
                                    .forEach(
                                            name ->
                                                    tables.append("<th>")
                                                            .append(
                                                                    Markup.escape(
                                                                            TaskResult.words(name)))
                                                            .append("</th>"));
                            tables.append("</tr>");
                            measured.forEach(task -> row(tables, task));
                            tables.append("</table></div>\n");
                        });
        return tables.toString();
    }

    private static void row(StringBuilder tables, TaskMetrics task) {
        tables.append("<tr>").append(ReportTables.cell("" + task.step()));
        task.measures()
                .values()
                .forEach(value -> tables.append(ReportTables.cell(TaskResult.shown(value))));
        tables.append("</tr>");
    }
}
