package dev.penstock.runtime.config.order;

import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.ScheduleTextException;
import dev.penstock.schedules.ir.TextPosition;
import dev.penstock.schedules.ir.TextProblem;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.Violation;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Everything that can be said of a file that is no order: what the reader found, and where only the
 * shape is in doubt, or some words, what the judge objects to in the rest, so that nobody has to
 * ask twice.
 */
public final class OrderProblems {
    private OrderProblems() {}

    /** By line and column; where both object to the same op, in the reader's words. */
    public static List<TextProblem> of(ScheduleTextException unreadable) {
        List<TextProblem> problems = new ArrayList<>(unreadable.problems());
        Set<TextPosition> told =
                problems.stream().map(TextProblem::position).collect(Collectors.toSet());
        boolean gaps = unreadable.draftHasGaps();
        unreadable
                .draft()
                .filter(draft -> !gaps || !draft.schedule().hasTransfers())
                .ifPresent(draft -> problems.addAll(judged(draft, told, gaps)));
        problems.sort(
                Comparator.comparingInt((TextProblem p) -> p.position().line())
                        .thenComparingInt(p -> p.position().column()));
        return problems;
    }

    private static List<TextProblem> judged(
            ParsedSchedule draft, Set<TextPosition> told, boolean gaps) {
        List<TextProblem> problems = new ArrayList<>();
        for (Violation violation : ScheduleValidator.validate(draft.schedule()).violations()) {
            TextPosition position = draft.positionOf(violation.place());
            if (!told.contains(position) && !(gaps && mayComeOfGap(violation))) {
                problems.add(new TextProblem(position, violation.message()));
            }
        }
        return problems;
    }

    /** Whether it might be cured by an op that stands there and could not be read. */
    private static boolean mayComeOfGap(Violation violation) {
        return switch (violation) {
            case Violation.Missing _,
                    Violation.NotResident _,
                    Violation.Deadlock _,
                    Violation.PeakExceeded _,
                    Violation.MemoryExceeded _ ->
                    true;
            case Violation.UnknownUnit _,
                    Violation.Unexpected _,
                    Violation.WrongRank _,
                    Violation.Duplicate _,
                    Violation.OutOfOrder _,
                    Violation.SliceOrder _ ->
                    false;
        };
    }
}
