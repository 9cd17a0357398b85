package dev.penstock.schedules.ir;

import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/** A text is no schedule. Holds everything that is wrong with it, in the order of the text. */
public final class ScheduleTextException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient List<TextProblem> problems;
    private final transient Optional<ParsedSchedule> draft;

    public ScheduleTextException(List<TextProblem> problems) {
        this(problems, Optional.empty());
    }

    /**
     * @param draft the schedule as far as it can be told, where every op could be read and only the
     *     shape is in doubt
     */
    ScheduleTextException(List<TextProblem> problems, Optional<ParsedSchedule> draft) {
        super(
                problems.stream()
                        .map(TextProblem::toString)
                        .collect(Collectors.joining("\n", "this is no schedule:\n", "")));
        this.problems = List.copyOf(problems);
        this.draft = draft;
    }

    /**
     * What a judge can look at in spite of the problems, so that what it finds can be told with
     * them. Stages, micro-batches and slices end before the first gap; a stage is where it is
     * computed first.
     */
    public Optional<ParsedSchedule> draft() {
        return draft;
    }

    public List<TextProblem> problems() {
        return problems;
    }
}
