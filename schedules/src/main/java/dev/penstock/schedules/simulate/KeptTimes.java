package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * How long the ops of a measured step kept their ranks. What computations waited for gathers
 * belongs to the gathers' ops; without such ops it is the computations' own.
 *
 * <pre>
 *   gather   forward .......... forward      a gather that its computation waited for
 *   kept by:  gather  | forward
 * </pre>
 *
 * @param nanos by rank and position
 * @param gathering the part of a computation's that went to gathers, by rank and position
 * @param copies of ops that copy, the time of that; of computations their waits for copies, which
 *     are part of no op's time
 */
record KeptTimes(long[][] nanos, long[][] gathering, long[][] copies) {
    /**
     * @param collectives and {@code copies} as {@link
     *     Timeline#measured(dev.penstock.schedules.ir.Schedule, long[][], long[][], long[][],
     *     long[][])} takes them
     */
    static KeptTimes of(Timeline step, long[][] collectives, long[][] copies) {
        List<RankProgram> programs = step.schedule().programs();
        var kept =
                new KeptTimes(
                        new long[programs.size()][],
                        new long[programs.size()][],
                        new long[programs.size()][]);
        for (int rank = 0; rank < programs.size(); rank++) {
            List<Op> ops = programs.get(rank).ops();
            kept.copies[rank] =
                    copies[rank].length == ops.size() ? copies[rank] : new long[ops.size()];
            kept.ofRank(step, rank, ops, collectives[rank]);
        }
        return kept;
    }

    private void ofRank(Timeline step, int rank, List<Op> ops, long[] collectives) {
        nanos[rank] = new long[ops.size()];
        gathering[rank] = new long[ops.size()];
        Map<Integer, Integer> gathers = new HashMap<>();
        Map<Integer, Long> waits = new HashMap<>();
        for (Op op : ops) {
            if (op instanceof Op.GatherParameters) {
                gathers.merge(op.stage(), 1, Integer::sum);
            }
        }
        for (int i = 0; i < ops.size(); i++) {
            Op op = ops.get(i);
            boolean computes = !op.computations().isEmpty();
            long duration = step.durationNanos(rank, i) - (computes ? copies[rank][i] : 0);
            if (op instanceof Op.GatherParameters || op instanceof Op.ReduceGradients) {
                nanos[rank][i] = collectives[i];
            } else if (!computes) {
                nanos[rank][i] = duration;
            } else if (gathers.containsKey(op.stage())) {
                nanos[rank][i] = duration - collectives[i];
                waits.merge(op.stage(), collectives[i], Long::sum);
            } else {
                nanos[rank][i] = duration;
                gathering[rank][i] = collectives[i];
            }
        }
        for (int i = 0; i < ops.size(); i++) {
            if (ops.get(i) instanceof Op.GatherParameters(int stage, _)) {
                nanos[rank][i] += waits.getOrDefault(stage, 0L) / gathers.getOrDefault(stage, 1);
            }
        }
    }
}
