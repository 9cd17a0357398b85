package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Sends a unit's activations to the host after its forward and brings them back before its backward
 * (PipeOffload; Wan et al. 2025, arXiv 2503.01328, section 3). A unit stays where it is if fewer
 * than two computations lie between its forward and the op before which it would come back: its
 * room would be free for nobody. So does a unit that is recomputed.
 *
 * <pre>
 * look-ahead 1:  0F0 0OFFLOAD0 0F1 0OFFLOAD1 0F2 0F3 0RELOAD0 0B3 0B0 ...
 * </pre>
 */
public final class InsertOffloads {
    private static final int LEAST_AWAY = 2;

    private InsertOffloads() {}

    /** The schedule with an offload and a reload for the units of these stages that have none. */
    public static Schedule into(Schedule schedule, OffloadSettings settings) {
        return schedule.withPrograms(
                schedule.programs().stream().map(program -> with(program, settings)).toList());
    }

    private static RankProgram with(RankProgram program, OffloadSettings settings) {
        Set<WorkUnit> settled = new HashSet<>();
        Map<WorkUnit, Integer> forwards = new HashMap<>();
        Map<Integer, List<Op>> before = new HashMap<>();
        Map<Integer, List<Op>> after = new HashMap<>();
        for (Op op : program.ops()) {
            if (op instanceof Op.ActivationOp || op instanceof Op.Recompute) {
                settled.add(((Op.UnitOp) op).unit());
            }
        }
        int at = 0;
        for (Op op : program.ops()) {
            for (Op.Compute part : op.computations()) {
                WorkUnit unit = part.unit();
                if (!settings.offloads(unit.stage()) || settled.contains(unit)) {
                    continue;
                }
                Integer forward = forwards.get(unit);
                if (part instanceof Op.Forward) {
                    forwards.put(unit, at);
                } else if (part instanceof Op.InputGradient && forward != null) {
                    int back = at - settings.lookAhead();
                    if (back - forward > LEAST_AWAY) {
                        add(after, forward, new Op.Offload(unit));
                        add(before, back, new Op.Reload(unit));
                    }
                }
            }
            at += op.computations().isEmpty() ? 0 : 1;
        }
        return new RankProgram(program.rank(), merged(program.ops(), before, after));
    }

    private static List<Op> merged(
            List<Op> program, Map<Integer, List<Op>> before, Map<Integer, List<Op>> after) {
        List<Op> ops = new ArrayList<>();
        int next = 0;
        for (Op op : program) {
            if (op.computations().isEmpty()) {
                ops.add(op);
            } else {
                ops.addAll(before.getOrDefault(next, List.of()));
                ops.add(op);
                ops.addAll(after.getOrDefault(next, List.of()));
                next++;
            }
        }
        return ops;
    }

    private static void add(Map<Integer, List<Op>> ops, int at, Op op) {
        ops.computeIfAbsent(at, _ -> new ArrayList<>(2)).add(op);
    }
}
