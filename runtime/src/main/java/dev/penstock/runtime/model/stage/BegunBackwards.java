package dev.penstock.runtime.model.stage;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Follows the backwards of a program: the micro-batches of every stage of which an op has run that
 * adds to gradients, and another one is to follow.
 */
final class BegunBackwards {
    private record Backward(int stage, int microBatch) {
        static Backward of(WorkUnit unit) {
            return new Backward(unit.stage(), unit.microBatch());
        }
    }

    private final Map<Backward, Integer> left = new HashMap<>();
    private final Map<Integer, Integer> begun = new TreeMap<>();
    private final Set<Backward> entered = new HashSet<>();

    BegunBackwards(RankProgram program) {
        for (Op op : program.ops()) {
            for (Op.Compute part : op.computations()) {
                if (part instanceof Op.InputGradient || part instanceof Op.BackwardWeight) {
                    left.merge(Backward.of(part.unit()), 1, Integer::sum);
                }
            }
        }
    }

    /**
     * Takes the next op that adds to gradients.
     *
     * @return by stage, the number of micro-batches while it runs
     */
    Map<Integer, Integer> with(WorkUnit unit) {
        var backward = Backward.of(unit);
        int after = left.merge(backward, -1, Integer::sum);
        if (entered.add(backward)) {
            begun.merge(unit.stage(), 1, Integer::sum);
        }
        Map<Integer, Integer> now = Map.copyOf(begun);
        if (after == 0) {
            begun.merge(unit.stage(), -1, Integer::sum);
        }
        return now;
    }
}
