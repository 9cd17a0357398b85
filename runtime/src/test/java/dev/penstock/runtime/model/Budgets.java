package dev.penstock.runtime.model;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Op.Backward;
import dev.penstock.schedules.ir.Op.Forward;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;

/** The tightest budget under which an order of work can run. */
final class Budgets {
    private Budgets() {}

    static StageBudget of(List<Op> ops, int slices) {
        Set<WorkUnit> live = new HashSet<>();
        int units = 0;
        int[] perSlice = new int[slices];
        int microBatches = 0;
        int backward = 0;
        for (Op op : ops) {
            if (op instanceof Forward f) {
                live.add(f.unit());
            }
            units = Math.max(units, live.size());
            for (int s = 0; s < slices; s++) {
                int slice = s;
                perSlice[s] = Math.max(perSlice[s], count(live, u -> u.slice() == slice));
            }
            microBatches = Math.max(microBatches, distinct(live));
            if (op instanceof Backward b) {
                backward = Math.max(backward, underWay(live, b.unit(), slices));
                live.remove(b.unit());
            }
        }
        return new StageBudget(
                units, Arrays.stream(perSlice).boxed().toList(), microBatches, backward);
    }

    private static int count(Set<WorkUnit> live, Predicate<WorkUnit> which) {
        return (int) live.stream().filter(which).count();
    }

    private static int distinct(Set<WorkUnit> live) {
        return (int) live.stream().mapToInt(WorkUnit::microBatch).distinct().count();
    }

    /** Micro-batches that wait for their first slice's backward alone or are now at work. */
    private static int underWay(Set<WorkUnit> live, WorkUnit now, int slices) {
        return (int)
                live.stream()
                        .mapToInt(WorkUnit::microBatch)
                        .distinct()
                        .filter(
                                m ->
                                        m == now.microBatch()
                                                || !live.contains(
                                                        new WorkUnit(now.stage(), m, slices - 1)))
                        .count();
    }
}
