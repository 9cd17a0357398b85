package dev.penstock.schedules.ir;

import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/** A text is no schedule. Holds everything that is wrong with it, in the order of the text. */
public final class ScheduleTextException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient List<TextProblem> problems;
    private final transient Optional<ParsedSchedule> draft;
    private final boolean gaps;

    /**
     * @param draft the schedule as far as it can be told, where every op could be read and only the
     *     shape is in doubt
     */
    ScheduleTextException(List<TextProblem> problems, Optional<ParsedSchedule> draft) {
        this(problems, draft, false);
    }

    /**
     * @param draft the schedule as far as it can be told
     * @param gaps whether words that could not be read are left out of it
     */
    ScheduleTextException(
            List<TextProblem> problems, Optional<ParsedSchedule> draft, boolean gaps) {
        super(
                problems.stream()
                        .map(TextProblem::toString)
                        .collect(Collectors.joining("\n", "this is no schedule:\n", "")));
        this.problems = List.copyOf(problems);
        this.draft = draft;
        this.gaps = gaps;
    }

    /**
     * What a judge can look at in spite of the problems, so that what it finds can be told with
     * them. Stages, micro-batches and slices end before the first gap; a stage is where it is
     * computed first.
     */
    public Optional<ParsedSchedule> draft() {
        return draft;
    }

    /**
     * Whether the draft lacks ops that are in the text, but could not be read: that it is not
     * complete is no news then.
     */
    public boolean draftHasGaps() {
        return gaps;
    }

    public List<TextProblem> problems() {
        return problems;
    }
}
