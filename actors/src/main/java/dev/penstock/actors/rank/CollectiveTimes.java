package dev.penstock.actors.rank;

import dev.penstock.actors.spi.StageProgram;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The time that gathers and sums over replicas cost a rank in a pass, op by op: for a computation,
 * the part that went to gathers; for a gather or a sum, the work and the waiting outside of
 * computations. The rank's thread only.
 */
final class CollectiveTimes {
    private final RankProgram program;
    private final Map<Integer, StageProgram> stages;
    private final long[] nanos;

    /**
     * For each stage, the time spent on its gathers before the pass, and in computations of the
     * pass.
     */
    private final Map<Integer, Long> before = new HashMap<>();

    private final Map<Integer, Long> inComputations = new HashMap<>();

    CollectiveTimes(RankProgram program, Map<Integer, StageProgram> stages) {
        this.program = program;
        this.stages = stages;
        this.nanos = new long[program.ops().size()];
    }

    /** Begins a pass. */
    void begin() {
        Arrays.fill(nanos, 0);
        inComputations.clear();
        stages.forEach((stage, held) -> before.put(stage, held.gatherNanos()));
    }

    /** Returns the time spent so far on gathers of the stages of a computation. */
    long gathers(Op computation) {
        long spent = 0;
        for (Op.Compute part : computation.computations()) {
            StageProgram stage = stages.get(part.stage());
            spent += stage == null ? 0 : stage.gatherNanos();
        }
        return spent;
    }

    /** Records the time that a computation spent on gathers. */
    void ofComputation(int position, long gathering) {
        nanos[position] = gathering;
        inComputations.merge(program.ops().get(position).stage(), gathering, Long::sum);
    }

    /** Records time for which a sum kept the rank busy. */
    void ofSum(int position, long more) {
        nanos[position] += more;
    }

    /** Returns the times of the finished pass; entry i belongs to op i. */
    long[] nanos() {
        List<Op> ops = program.ops();
        Map<Integer, Long> count = new HashMap<>();
        for (Op op : ops) {
            if (op instanceof Op.GatherParameters) {
                count.merge(op.stage(), 1L, Long::sum);
            }
        }
        long[] all = nanos.clone();
        for (int i = 0; i < all.length; i++) {
            Long gathers = count.get(ops.get(i).stage());
            if (ops.get(i) instanceof Op.GatherParameters && gathers != null) {
                all[i] = outside(ops.get(i).stage()) / gathers;
            }
        }
        return all;
    }

    /** Returns the time spent on gathers of a stage between its computations. */
    private long outside(int stage) {
        StageProgram held = stages.get(stage);
        return held == null
                ? 0
                : Math.max(
                        0,
                        held.gatherNanos()
                                - before.getOrDefault(stage, 0L)
                                - inComputations.getOrDefault(stage, 0L));
    }
}
