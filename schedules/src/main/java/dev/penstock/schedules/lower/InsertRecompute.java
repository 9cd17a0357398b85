package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntPredicate;

/**
 * Lets activations go after the forward and runs the forward again right before the backward (Chen
 * et al., Training Deep Nets with Sublinear Memory Cost): between the two a unit holds its input
 * alone. The gradient that the backward waits for is waited for after the recompute, where sends
 * and receives are inserted later.
 */
public final class InsertRecompute {
    private InsertRecompute() {}

    /** The schedule with a recompute for every unit that has none. */
    public static Schedule into(Schedule schedule) {
        return into(schedule, _ -> true);
    }

    /** The same for the units of some stages. */
    public static Schedule into(Schedule schedule, IntPredicate stages) {
        Set<WorkUnit> done = new HashSet<>();
        for (RankProgram program : schedule.programs()) {
            for (Op op : program.ops()) {
                if (op instanceof Op.Recompute(WorkUnit unit)) {
                    done.add(unit);
                }
            }
        }
        return schedule.withPrograms(
                schedule.programs().stream().map(program -> with(program, stages, done)).toList());
    }

    private static RankProgram with(RankProgram program, IntPredicate stages, Set<WorkUnit> done) {
        List<Op> ops = new ArrayList<>();
        for (Op op : program.ops()) {
            for (Op.Compute part : op.computations()) {
                if (part instanceof Op.InputGradient
                        && stages.test(part.stage())
                        && !done.contains(part.unit())) {
                    ops.add(new Op.Recompute(part.unit()));
                }
            }
            ops.add(op);
        }
        return new RankProgram(program.rank(), ops);
    }
}
