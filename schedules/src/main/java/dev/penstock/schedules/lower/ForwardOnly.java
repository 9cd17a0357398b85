package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;

/** Keeps the forwards of a schedule, in their order. */
public final class ForwardOnly {
    private ForwardOnly() {}

    /** A compute-only schedule without backwards, transfers and reductions. */
    public static Schedule of(Schedule schedule) {
        return new Schedule(
                schedule.name() + " forward",
                schedule.shape(),
                schedule.placement(),
                schedule.programs().stream().map(ForwardOnly::forwards).toList());
    }

    private static RankProgram forwards(RankProgram program) {
        return new RankProgram(
                program.rank(),
                program.ops().stream()
                        .<Op>flatMap(op -> op.computations().stream())
                        .filter(op -> op instanceof Op.Forward)
                        .toList());
    }
}
