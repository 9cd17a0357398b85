package dev.penstock.runtime.config.run;

import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigUtil;
import com.typesafe.config.ConfigValue;
import dev.penstock.runtime.config.reading.Mismatch;
import dev.penstock.runtime.config.reading.Places;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.evaluation.TaskRequest;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * An entry of {@code evaluation.tasks}: what a model is measured by while it trains.
 *
 * @param data a file, a folder or a glob, absolute
 */
public record EvaluationTask(TaskRequest request, Path data) {
    static final String FORM =
            "{ task = text|wikitext|lambada|choices, data = a file, protocol = megatron|lm-eval,"
                    + " stride = tokens }";

    private static final String TASK = "task";
    private static final String DATA = "data";
    private static final String PROTOCOL = "protocol";
    private static final String STRIDE = "stride";
    private static final Set<String> MEMBERS = Set.of(TASK, DATA, PROTOCOL, STRIDE);

    static EvaluationTask read(ConfigValue value, Places places) {
        if (!(value instanceof ConfigObject members)) {
            throw new Mismatch();
        }
        Set<String> unknown = new TreeSet<>(members.keySet());
        unknown.removeAll(MEMBERS);
        if (!unknown.isEmpty()) {
            throw new Mismatch("", "%s is no member of it".formatted(String.join(", ", unknown)));
        }
        ConfigValue data = members.get(DATA);
        if (data == null) {
            throw new Mismatch("", "name what it reads with data");
        }
        List<DataProblem> problems = new ArrayList<>();
        var request =
                TaskRequest.read(
                        text(members, TASK),
                        text(members, PROTOCOL),
                        stride(members),
                        name -> name,
                        problems);
        if (request.isEmpty()) {
            throw new Mismatch(
                    "",
                    problems.stream().map(DataProblem::toString).collect(Collectors.joining("; ")));
        }
        return new EvaluationTask(request.get(), places.existing(data));
    }

    private static @Nullable String text(Map<String, ConfigValue> members, String name) {
        ConfigValue value = members.get(name);
        return value == null ? null : value.unwrapped().toString();
    }

    private static @Nullable Integer stride(Map<String, ConfigValue> members) {
        String text = text(members, STRIDE);
        try {
            return text == null ? null : Integer.valueOf(text);
        } catch (NumberFormatException e) {
            throw new Mismatch("", "stride is a number of tokens");
        }
    }

    /** This entry as it would be written in a file. */
    String written() {
        String stride =
                request.stride().isPresent()
                        ? ", %s = %d".formatted(STRIDE, request.stride().getAsInt())
                        : "";
        return "{ %s = %s, %s = %s, %s = %s%s }"
                .formatted(
                        TASK,
                        request.task().word(),
                        PROTOCOL,
                        request.protocol().word(),
                        DATA,
                        ConfigUtil.quoteString(data.toString()),
                        stride);
    }
}
