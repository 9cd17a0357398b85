package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.MemoryProfile;
import java.util.ArrayList;
import java.util.Comparator;

/**
 * The judge. It knows no generator and trusts nobody: it looks at ops alone.
 *
 * <p>A valid schedule has every op once and on the right rank, each after what it needs, with the
 * slices of a sequence rising on the way forward and falling on the way back; it cannot hang with
 * the given capacities, and no rank holds more than it may. A schedule without transfers is judged
 * as if tensors travelled by themselves, one with any must have all; one that is not computations
 * alone must have all its reductions. Linear in ops.
 */
public final class ScheduleValidator {
    private ScheduleValidator() {}

    /** Judges a training schedule with unbounded channels and no limit on memory. */
    public static ValidationReport validate(Schedule schedule) {
        return validate(schedule, Conditions.training());
    }

    /**
     * Judges a schedule; all violations at once.
     *
     * @throws IllegalArgumentException if the limit in bytes is not for such a schedule
     */
    public static ValidationReport validate(Schedule schedule, Conditions conditions) {
        var index = new OpIndex(schedule);
        var violations = new ArrayList<Violation>();
        violations.addAll(new Completeness(schedule, conditions, index).violations());
        violations.addAll(new OpOrderCheck(schedule, index).violations());
        violations.addAll(
                new Residency(schedule, conditions.memoryLimit().map(MemoryLimit::model))
                        .violations());
        violations.addAll(
                new Deadlocks(schedule, conditions.inFlight()).violations(violations.isEmpty()));
        MemoryProfile memory = MemoryProfile.of(schedule, conditions.passKind());
        violations.addAll(new Peaks(schedule, conditions, memory).violations());
        violations.sort(
                Comparator.comparingInt((Violation v) -> v.place().rank())
                        .thenComparingInt(v -> v.place().position()));
        return new ValidationReport(schedule, conditions, violations, memory);
    }
}
