package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.MemoryProfile;
import java.util.List;

/**
 * The judge's findings.
 *
 * @param violations all of them, by rank and position; empty if the schedule is valid
 * @param memory peak activations, which the order alone decides
 */
public record ValidationReport(
        Schedule schedule,
        Conditions conditions,
        List<Violation> violations,
        MemoryProfile memory) {
    private static final int SHOWN = 40;

    public ValidationReport {
        violations = List.copyOf(violations);
    }

    public boolean isValid() {
        return violations.isEmpty();
    }

    /**
     * Throws unless the schedule is valid.
     *
     * @return this report
     */
    public ValidationReport orThrow() {
        if (!isValid()) {
            throw new InvalidScheduleException(this);
        }
        return this;
    }

    /** The findings for people, one violation per line, the first {@value #SHOWN} of them. */
    public String describe() {
        if (isValid()) {
            return schedule.name() + " is valid";
        }
        int count = violations.size();
        var text = new StringBuilder(schedule.name());
        text.append(" cannot run: ").append(count).append(count == 1 ? " fault" : " faults");
        violations.stream()
                .limit(SHOWN)
                .forEach(violation -> text.append("\n  ").append(violation.message()));
        if (count > SHOWN) {
            text.append("\n  ... and ").append(count - SHOWN).append(" more");
        }
        return text.toString();
    }
}
