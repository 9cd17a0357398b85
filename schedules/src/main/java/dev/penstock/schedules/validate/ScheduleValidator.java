package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.MemoryProfile;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The judge. It knows no generator and trusts nobody: it looks at ops alone.
 *
 * <p>A valid schedule has every op once and on the right rank, each after what it needs, with the
 * slices of a sequence rising on the way forward and falling on the way back; it cannot hang with
 * the given capacities, and no rank holds more than it may. A schedule of computations alone is
 * judged as if tensors travelled by themselves; one with any other op must have all its transfers
 * and reductions. Linear in ops.
 */
public final class ScheduleValidator {
    private ScheduleValidator() {}

    /** Judges a training schedule with unbounded channels and no limit on memory. */
    public static ValidationReport validate(Schedule schedule) {
        return validate(schedule, Conditions.training());
    }

    /** Judges a schedule; all violations at once. */
    public static ValidationReport validate(Schedule schedule, Conditions conditions) {
        var index = new OpIndex(schedule);
        var violations = new ArrayList<Violation>();
        violations.addAll(new Completeness(schedule, conditions.passKind(), index).violations());
        violations.addAll(new RankOrder(schedule, index).violations());
        violations.addAll(new Residency(schedule).violations());
        violations.addAll(
                new Deadlocks(schedule, conditions.inFlight()).violations(violations.isEmpty()));
        MemoryProfile memory = MemoryProfile.of(schedule, conditions.passKind());
        violations.addAll(peaks(schedule, conditions, memory));
        violations.sort(
                Comparator.comparingInt((Violation v) -> v.place().rank())
                        .thenComparingInt(v -> v.place().position()));
        return new ValidationReport(schedule, conditions, violations, memory);
    }

    private static List<Violation> peaks(
            Schedule schedule, Conditions conditions, MemoryProfile memory) {
        var violations = new ArrayList<Violation>();
        int limit = conditions.peakUnitsLimit().orElse(Integer.MAX_VALUE);
        for (MemoryProfile.RankPeak peak : memory.ranks()) {
            if (peak.peakUnits() > limit) {
                Op op = schedule.program(peak.rank()).ops().get(peak.position());
                violations.add(
                        new Violation.PeakExceeded(
                                new OpPlace(peak.rank(), peak.position(), op),
                                peak.peakUnits(),
                                limit,
                                "rank %d holds %d units at %s (op %d), more than the limit of %d"
                                        .formatted(
                                                peak.rank(),
                                                peak.peakUnits(),
                                                OpText.print(op, schedule.shape()),
                                                peak.position(),
                                                limit)));
            }
        }
        return violations;
    }
}
