package dev.penstock.schedules.ir;

import java.util.List;
import java.util.stream.Collectors;

/** A text is no schedule. Holds everything that is wrong with it, in the order of the text. */
public final class ScheduleTextException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient List<TextProblem> problems;

    public ScheduleTextException(List<TextProblem> problems) {
        super(
                problems.stream()
                        .map(TextProblem::toString)
                        .collect(Collectors.joining("\n", "this is no schedule:\n", "")));
        this.problems = List.copyOf(problems);
    }

    public List<TextProblem> problems() {
        return problems;
    }
}
