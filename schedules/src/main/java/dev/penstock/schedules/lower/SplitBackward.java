package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;

/**
 * Parts every full backward: the gradient of the input first, which others wait for, and right
 * after it the gradients of the weights. {@link MergeBackward} is the way back.
 *
 * <pre>
 * 1B0           becomes  1I0 1W0
 * (1F1;1B0)     becomes  (1F1;1I0) 1W0
 * 1B0 1SEND_B0  becomes  1I0 1SEND_B0 1W0
 * </pre>
 */
public final class SplitBackward {
    private SplitBackward() {}

    /** The schedule without full backwards. */
    public static Schedule in(Schedule schedule) {
        return schedule.withPrograms(
                schedule.programs().stream()
                        .map(program -> new RankProgram(program.rank(), split(program.ops())))
                        .toList());
    }

    private static List<Op> split(List<Op> ops) {
        var parts = new ArrayList<Op>();
        for (int i = 0; i < ops.size(); i++) {
            switch (ops.get(i)) {
                case Op.Backward(WorkUnit unit) -> {
                    parts.add(new Op.BackwardInput(unit));
                    i = withWeights(parts, ops, i, unit);
                }
                case Op.Overlapped(Op.Forward forward, Op.Backward(WorkUnit unit)) -> {
                    parts.add(new Op.Overlapped(forward, new Op.BackwardInput(unit)));
                    i = withWeights(parts, ops, i, unit);
                }
                case Op other -> parts.add(other);
            }
        }
        return parts;
    }

    /** Adds the second part, after the sends that follow the first. Returns the last op passed. */
    private static int withWeights(List<Op> parts, List<Op> ops, int at, WorkUnit unit) {
        int last = at;
        while (last + 1 < ops.size() && ops.get(last + 1).isSend()) {
            parts.add(ops.get(++last));
        }
        parts.add(new Op.BackwardWeight(unit));
        return last;
    }
}
