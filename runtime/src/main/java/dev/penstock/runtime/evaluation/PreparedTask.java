package dev.penstock.runtime.evaluation;

import dev.penstock.runtime.data.DataProblem;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/** A task that was read and cut into windows, ready for a model. */
public final class PreparedTask {
    /** The name of the result of all files together. */
    public static final String TOTAL = "total";

    private final TaskRequest request;
    private final List<String> files;
    private final List<TaskText> texts;

    PreparedTask(TaskRequest request, List<String> files, List<TaskText> texts) {
        this.request = request;
        this.files = List.copyOf(files);
        this.texts = List.copyOf(texts);
    }

    /** Returns a problem for each file in which there is nothing to guess. */
    List<DataProblem> emptyFiles() {
        Set<Integer> filled = new HashSet<>();
        texts.stream()
                .filter(text -> isOfLines() || !text.windows().isEmpty())
                .forEach(text -> filled.add(text.file()));
        String expected = isOfLines() ? "at least one line" : "at least 2 tokens";
        return IntStream.range(0, files.size())
                .filter(file -> !filled.contains(file))
                .mapToObj(file -> new DataProblem(files.get(file), expected, "fewer", "use more"))
                .toList();
    }

    private boolean isOfLines() {
        return request.task() == TaskKind.LAMBADA || request.task() == TaskKind.CHOICES;
    }

    private Map<String, Number> measures(Tally tally) {
        return request.protocol().measures(request.task(), tally);
    }

    /** Returns what was asked for. */
    public TaskRequest request() {
        return request;
    }

    /** Returns all windows, in the order of their texts. */
    public List<Window> windows() {
        return texts.stream().flatMap(text -> text.windows().stream()).toList();
    }

    /** Returns the largest number of a token that a model reads or guesses; -1 if there is none. */
    public int largestToken() {
        return windows().stream()
                .map(Window::row)
                .distinct()
                .flatMapToInt(Arrays::stream)
                .max()
                .orElse(-1);
    }

    /**
     * Returns the figures of each file.
     *
     * @param scores entry i is that of window i
     */
    public List<TaskResult> byFile(List<Score> scores) {
        List<Tally> tallies = new ArrayList<>();
        files.forEach(_ -> tallies.add(new Tally()));
        walk(scores, (text, own) -> text.add().accept(tallies.get(text.file()), own));
        return IntStream.range(0, files.size())
                .mapToObj(i -> new TaskResult(files.get(i), measures(tallies.get(i))))
                .toList();
    }

    /**
     * Returns the figures of all files together.
     *
     * @param scores entry i is that of window i
     */
    public TaskResult total(List<Score> scores) {
        Tally tally = new Tally();
        walk(scores, (text, own) -> text.add().accept(tally, own));
        return new TaskResult(TOTAL, measures(tally));
    }

    private interface Visitor {
        void visit(TaskText text, List<Score> own);
    }

    private void walk(List<Score> scores, Visitor visitor) {
        int next = 0;
        for (TaskText text : texts) {
            int end = next + text.windows().size();
            visitor.visit(text, scores.subList(next, end));
            next = end;
        }
        if (next != scores.size()) {
            throw new IllegalArgumentException(
                    "expected %d scores, got %d".formatted(next, scores.size()));
        }
    }
}
