package dev.penstock.runtime.evaluation;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Questions with several endings, of which the likeliest is the answer: JSON lines with {@code
 * context}, {@code choices} and {@code answer}, or with the members of HellaSwag or PIQA, prepared
 * as lm-evaluation-harness does.
 */
final class ChoicesTask {
    private static final Pattern BRACKETS = Pattern.compile("\\[.*?\\]", Pattern.UNIX_LINES);

    private static final Pattern DIGITS = Pattern.compile("[0-9]{1,9}");

    private ChoicesTask() {}

    /**
     * @param answer index of the right choice
     */
    private record Question(String context, List<String> choices, int answer) {}

    static List<TaskText> lmEval(
            TaskFiles reader, List<Path> files, Tokenizer tokenizer, int context) {
        List<TaskText> texts = new ArrayList<>();
        for (int file = 0; file < files.size(); file++) {
            for (TaskFiles.Line line : reader.lines(files.get(file))) {
                Question question = question(reader, line);
                if (question != null) {
                    texts.add(text(reader, line.at(), file, question, tokenizer, context));
                }
            }
        }
        return texts;
    }

    private static TaskText text(
            TaskFiles reader,
            String at,
            int file,
            Question question,
            Tokenizer tokenizer,
            int context) {
        List<Window> windows = new ArrayList<>();
        for (String choice : question.choices()) {
            var pair = ContextAndTarget.of(tokenizer, question.context(), " " + choice);
            if (pair.check(reader, at, context)) {
                windows.addAll(TextWindows.ending(pair.context(), pair.target(), context));
            }
        }
        return new TaskText(
                file,
                windows,
                (tally, scores) -> {
                    tally.texts++;
                    tally.right += isRight(question, scores, _ -> 1);
                    tally.rightByCharacter +=
                            isRight(question, scores, c -> c.codePointCount(0, c.length()));
                    tally.rightByByte +=
                            isRight(
                                    question,
                                    scores,
                                    c -> c.getBytes(StandardCharsets.UTF_8).length);
                });
    }

    /** The first of the best is chosen. */
    private static int isRight(
            Question question, List<Score> scores, ToDoubleFunction<String> length) {
        int best = 0;
        double highest = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < scores.size(); i++) {
            double likelihood =
                    scores.get(i).logLikelihood() / length.applyAsDouble(question.choices().get(i));
            if (likelihood > highest) {
                highest = likelihood;
                best = i;
            }
        }
        return best == question.answer() ? 1 : 0;
    }

    private static @Nullable Question question(TaskFiles reader, TaskFiles.Line line) {
        JsonNode object = line.object();
        int before = reader.problems();
        List<String> choices = new ArrayList<>();
        String context;
        JsonNode answer;
        if (object.has("endings")) {
            context = hellaSwag(reader, line);
            reader.textsOf(line, "endings").forEach(ending -> choices.add(cleaned(ending)));
            answer = object.path("label");
        } else if (object.has("goal")) {
            context = "Question: " + reader.textOf(line, "goal") + "\nAnswer:";
            choices.add(reader.textOf(line, "sol1"));
            choices.add(reader.textOf(line, "sol2"));
            answer = object.path("label");
        } else {
            context = reader.textOf(line, "context");
            choices.addAll(reader.textsOf(line, "choices"));
            answer = object.path("answer");
        }
        if (reader.problems() > before) {
            return null;
        }
        int right = index(answer);
        if (choices.size() < 2 || choices.stream().anyMatch(String::isEmpty)) {
            reader.wrong(line.at(), "two choices or more that are not empty", choices.toString());
            return null;
        }
        if (right < 0 || right >= choices.size()) {
            reader.wrong(
                    line.at(),
                    "an answer from 0 to %d".formatted(choices.size() - 1),
                    TaskFiles.said(answer));
            return null;
        }
        return new Question(context, choices, right);
    }

    /** A whole number, which HellaSwag has as text; -1 if it is none. */
    private static int index(JsonNode answer) {
        if (answer.isIntegralNumber() && answer.canConvertToInt()) {
            return answer.intValue();
        }
        return answer.isTextual() && DIGITS.matcher(answer.textValue()).matches()
                ? Integer.parseInt(answer.textValue())
                : -1;
    }

    private static String hellaSwag(TaskFiles reader, TaskFiles.Line line) {
        String second = reader.textOf(line, "ctx_b");
        int first = second.isEmpty() ? 0 : second.offsetByCodePoints(0, 1);
        String capitalised =
                second.isEmpty()
                        ? ""
                        : Character.toString(Character.toTitleCase(second.codePointAt(0)))
                                + second.substring(first).toLowerCase(Locale.ROOT);
        return cleaned(
                reader.textOf(line, "activity_label")
                        + ": "
                        + reader.textOf(line, "ctx_a")
                        + " "
                        + capitalised);
    }

    private static String cleaned(String text) {
        String titled = Whitespace.strip(text).replace(" [title]", ". ");
        return BRACKETS.matcher(titled).replaceAll("").replace("  ", " ");
    }

    static Map<String, Number> measures(Tally tally) {
        return new Measures()
                .count("questions", tally.texts)
                .figure("acc", tally.share(tally.right))
                .figure("accNorm", tally.share(tally.rightByCharacter))
                .figure("accBytes", tally.share(tally.rightByByte))
                .all();
    }
}
