package dev.penstock.runtime.config.run;

import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigUtil;
import com.typesafe.config.ConfigValue;
import dev.penstock.runtime.config.reading.Mismatch;
import dev.penstock.runtime.config.reading.NearWord;
import dev.penstock.runtime.config.reading.Places;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.evaluation.TaskRequest;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
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
    private static final String READ = "a file, a folder or a glob that exists";
    private static final List<String> MEMBERS = List.of(TASK, DATA, PROTOCOL, STRIDE);

    /**
     * Reads an entry.
     *
     * @throws Mismatch with every part of it that is wrong
     */
    static EvaluationTask read(ConfigValue value, Places places) {
        if (!(value instanceof ConfigObject members)) {
            throw new Mismatch(List.of(part(value, "", FORM, quoted(value), "")));
        }
        List<Mismatch.Part> wrong = new ArrayList<>();
        members.forEach((name, member) -> known(name, member, wrong));
        Optional<TaskRequest> request = request(members, wrong);
        Optional<Path> data = data(members, places, wrong);
        if (!wrong.isEmpty()) {
            throw new Mismatch(wrong);
        }
        return new EvaluationTask(request.orElseThrow(), data.orElseThrow());
    }

    private static void known(String name, ConfigValue member, List<Mismatch.Part> wrong) {
        if (!MEMBERS.contains(name)) {
            wrong.add(
                    part(
                            member,
                            "." + name,
                            "one of " + String.join(", ", MEMBERS),
                            "an unknown key",
                            NearWord.among(MEMBERS, name)
                                    .map(known -> "did you mean " + known + "?")
                                    .orElse(name + " is no member of it")));
        }
    }

    private static Optional<TaskRequest> request(ConfigObject members, List<Mismatch.Part> wrong) {
        List<DataProblem> problems = new ArrayList<>();
        Optional<TaskRequest> request =
                TaskRequest.read(
                        text(members, TASK),
                        text(members, PROTOCOL),
                        stride(members, wrong),
                        name -> name,
                        problems);
        for (DataProblem problem : problems) {
            wrong.add(
                    part(
                            members.getOrDefault(problem.key(), members),
                            "." + problem.key(),
                            problem.expected(),
                            problem.got(),
                            problem.advice()));
        }
        return request;
    }

    private static Optional<Path> data(
            ConfigObject members, Places places, List<Mismatch.Part> wrong) {
        ConfigValue data = members.get(DATA);
        if (data == null) {
            wrong.add(part(members, "." + DATA, READ, "nothing", "name what it reads with data"));
            return Optional.empty();
        }
        try {
            return Optional.of(places.existing(data));
        } catch (Mismatch none) {
            String advice = none.adviceOr("");
            wrong.add(part(data, "." + DATA, READ, none.gotOr(quoted(data)), advice));
            return Optional.empty();
        }
    }

    private static @Nullable Integer stride(ConfigObject members, List<Mismatch.Part> wrong) {
        ConfigValue stride = members.get(STRIDE);
        if (stride == null) {
            return null;
        }
        try {
            return Integer.valueOf(stride.unwrapped().toString());
        } catch (NumberFormatException e) {
            wrong.add(
                    part(
                            stride,
                            "." + STRIDE,
                            "1 or more tokens",
                            quoted(stride),
                            "stride is a number of tokens"));
            return null;
        }
    }

    private static @Nullable String text(ConfigObject members, String name) {
        ConfigValue value = members.get(name);
        return value == null ? null : value.unwrapped().toString();
    }

    private static Mismatch.Part part(
            ConfigValue at, String place, String expected, String got, String advice) {
        return new Mismatch.Part(at.origin(), place, expected, got, advice);
    }

    private static String quoted(ConfigValue value) {
        return value.render(ConfigRenderOptions.concise());
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
