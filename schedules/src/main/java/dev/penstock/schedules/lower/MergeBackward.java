package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Joins the two parts of a backward where they stand together, with nothing between them but sends:
 * a device then runs one op, which is cheaper than two. The sends wait for all of it. Parts that
 * stand apart stay parted.
 */
public final class MergeBackward {
    private MergeBackward() {}

    /** The schedule with as few parted backwards as its order allows. */
    public static Schedule in(Schedule schedule) {
        return schedule.withPrograms(
                schedule.programs().stream()
                        .map(program -> new RankProgram(program.rank(), merged(program.ops())))
                        .toList());
    }

    private static List<Op> merged(List<Op> ops) {
        var merged = new ArrayList<Op>();
        for (int i = 0; i < ops.size(); i++) {
            Op op = ops.get(i);
            Optional<WorkUnit> parted = inputUnit(op);
            int next = i + 1;
            while (next < ops.size() && ops.get(next).isSend()) {
                next++;
            }
            boolean together =
                    parted.isPresent()
                            && next < ops.size()
                            && ops.get(next).equals(new Op.BackwardWeight(parted.get()));
            if (together) {
                merged.add(whole(op, parted.get()));
                merged.addAll(ops.subList(i + 1, next));
                i = next;
            } else {
                merged.add(op);
            }
        }
        return merged;
    }

    /** The unit of whose backward this is the first part, alone or in a pair. */
    private static Optional<WorkUnit> inputUnit(Op op) {
        return op.computations().stream()
                .filter(part -> part instanceof Op.BackwardInput)
                .map(Op.Compute::unit)
                .findFirst();
    }

    private static Op whole(Op input, WorkUnit unit) {
        return input instanceof Op.Overlapped pair
                ? new Op.Overlapped(pair.forward(), new Op.Backward(unit))
                : new Op.Backward(unit);
    }
}
