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
 * computations. Also what copies took. The rank's thread only.
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

    /** What copies of each stage had taken before the pass. */
    private final Map<Integer, StageProgram.Copies> copiesBefore = new HashMap<>();

    /** For each computation, what it waited for activations. */
    private final long[] copyWaits;

    CollectiveTimes(RankProgram program, Map<Integer, StageProgram> stages) {
        this.program = program;
        this.stages = stages;
        this.nanos = new long[program.ops().size()];
        this.copyWaits = new long[nanos.length];
    }

    /** Begins a pass. */
    void begin() {
        Arrays.fill(nanos, 0);
        inComputations.clear();
        stages.forEach((stage, held) -> before.put(stage, held.gatherNanos()));
        Arrays.fill(copyWaits, 0);
        stages.forEach((stage, held) -> copiesBefore.put(stage, held.copies()));
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

    /** Returns what computations of the stages of a computation have waited for activations. */
    long copyWaits(Op computation) {
        long waited = 0;
        for (Op.Compute part : computation.computations()) {
            StageProgram stage = stages.get(part.stage());
            waited += stage == null ? 0 : stage.copies().waits();
        }
        return waited;
    }

    /** Records what a computation waited for activations. */
    void waitedForCopies(int position, long waited) {
        copyWaits[position] = waited;
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

    /**
     * Returns what copies of the finished pass took; entry i belongs to op i. There are none if
     * nothing was copied.
     */
    long[] copies() {
        List<Op> ops = program.ops();
        Map<OfStage, Long> count = new HashMap<>();
        ops.stream()
                .filter(op -> op.computations().isEmpty())
                .forEach(op -> count.merge(OfStage.of(op), 1L, Long::sum));
        long[] all = copyWaits.clone();
        for (int i = 0; i < all.length; i++) {
            Long equals = count.get(OfStage.of(ops.get(i)));
            if (ops.get(i).computations().isEmpty() && equals != null) {
                all[i] = copying(ops.get(i)) / equals;
            }
        }
        return Arrays.stream(all).anyMatch(each -> each != 0) ? all : new long[0];
    }

    private record OfStage(Class<? extends Op> kind, int stage) {
        static OfStage of(Op op) {
            return new OfStage(op.getClass(), op.stage());
        }
    }

    /** Returns what copies of an op's kind and stage took in the pass. */
    private long copying(Op op) {
        StageProgram held = stages.get(op.stage());
        if (held == null) {
            return 0;
        }
        StageProgram.Copies now = held.copies();
        StageProgram.Copies then = copiesBefore.getOrDefault(op.stage(), StageProgram.Copies.NONE);
        return switch (op) {
            case Op.Offload _ -> now.toHost() - then.toHost();
            case Op.Reload _ -> now.back() - then.back();
            case Op.GatherParameters _ -> now.loads() - then.loads();
            case Op.ReduceGradients _ -> now.leaving() - then.leaving();
            case Op.Compute _, Op.Overlapped _, Op.Transfer _, Op.ReleaseParameters _ -> 0;
        };
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
