package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.OpGrid;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.simulate.BlockedOp;
import dev.penstock.schedules.validate.ValidationReport;
import dev.penstock.schedules.validate.Violation;
import java.util.List;

/**
 * What the judge objects to, cut out of the schedule with a little of what stands around it. Of a
 * deadlock the whole cycle: each marked op stands still until the one with the question mark has
 * run.
 *
 * <pre>
 * op     | 0   1    2    3
 * rank 0 | 0F0 !0B0 ?0F1 0B1
 * rank 1 | 1F0 !1F1 ?1B0 1B1
 * rank 2 | 2F0 2B0  2F1  2B1
 * ! is blocked, ? is what it waits for
 * </pre>
 */
public final class FaultGrid {
    private static final int MAX_VIOLATIONS = 20;
    private static final int MAX_CYCLE = 20;

    private final OpGrid grid;
    private boolean deadlock;

    private FaultGrid(OpGrid grid) {
        this.grid = grid;
    }

    /** The part of the schedule that its faults are in; empty for a valid one. */
    public static String of(ValidationReport report) {
        if (report.isValid()) {
            return "";
        }
        var faults = new FaultGrid(new OpGrid(report.schedule()));
        report.violations().stream().limit(MAX_VIOLATIONS).forEach(faults::mark);
        return faults.grid.print(faults.deadlock ? OpGrid.DEADLOCK : OpGrid.FAULT);
    }

    private void mark(Violation violation) {
        switch (violation) {
            case Violation.Deadlock(_, List<BlockedOp> cycle, _) -> {
                deadlock = true;
                for (BlockedOp wait : cycle.subList(0, Math.min(MAX_CYCLE, cycle.size()))) {
                    grid.mark(wait.place(), "!");
                    wait.awaitedPlace().ifPresent(awaited -> grid.mark(awaited, "?"));
                }
            }
            case Violation.Missing(OpPlace place, _) -> grid.markMissing(place);
            case Violation.OutOfOrder _,
                    Violation.SliceOrder _,
                    Violation.UnknownUnit _,
                    Violation.Unexpected _,
                    Violation.WrongRank _,
                    Violation.Duplicate _,
                    Violation.NotResident _,
                    Violation.PeakExceeded _,
                    Violation.MemoryExceeded _ ->
                    grid.mark(violation.place(), "!");
        }
    }
}
