package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.evaluation.TaskRequest;
import dev.penstock.runtime.evaluation.TaskResult;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The figures of a task, for people and for programs; beside them the protocol that they follow.
 *
 * @param model its path
 * @param step of a checkpoint; empty for weights
 * @param context tokens that the model sees at most
 * @param data what was read
 * @param files a result for each; empty where only the total is wanted
 */
record TaskAnswer(
        String model,
        Optional<Long> step,
        TaskRequest request,
        int context,
        String data,
        TaskResult total,
        Optional<List<TaskResult>> files) {
    /** The answer for programs: figures by name, in the order in which they are told. */
    Map<String, Object> document() {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("model", model);
        step.ifPresent(number -> document.put("step", number));
        document.put("task", request.task().word());
        document.put("protocol", request.protocol().word());
        document.put("context", context);
        request.stride().ifPresent(tokens -> document.put("stride", tokens));
        document.put("data", data);
        document.putAll(total.measures());
        files.ifPresent(
                results ->
                        document.put("files", results.stream().map(TaskAnswer::document).toList()));
        return document;
    }

    private static Map<String, Object> document(TaskResult result) {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("file", result.file());
        document.putAll(result.measures());
        return document;
    }

    /** The answer for people: a heading and a table. */
    List<String> lines() {
        List<TaskResult> rows = new ArrayList<>(files.orElse(List.of()));
        rows.add(total);
        List<String> lines = new ArrayList<>();
        lines.add(
                "%s of %s by protocol %s%s%s"
                        .formatted(
                                request.task().word(),
                                data,
                                request.protocol().word(),
                                request.stride().isPresent()
                                        ? ", stride " + request.stride().getAsInt()
                                        : "",
                                step.map(number -> ", after step " + number).orElse("")));
        lines.addAll(ResultTable.lines(request.protocol().word(), context, rows));
        return lines;
    }
}
