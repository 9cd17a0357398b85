package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Writes the reductions of stages among their replicas into one rank's ops: right after the last
 * weight gradient of a step or micro-batch, behind the releases that follow it.
 */
final class ReplicaReductions {
    /** Whose gradients are complete with one op: a stage's, or a stage's of one micro-batch. */
    private record Gradients(int stage, int microBatch) {}

    private final GradientReduction reduction;
    private final Set<Integer> settled;
    private final List<Op> ops = new ArrayList<>();

    /**
     * @param settled stages that get none here
     * @param shared stages that do not get their last one here
     */
    ReplicaReductions(
            List<Op> program,
            Set<Integer> settled,
            Set<Integer> shared,
            GradientReduction reduction) {
        this.reduction = reduction;
        this.settled = settled;
        Map<Gradients, Integer> last = new HashMap<>();
        Map<Integer, Gradients> lastOfStage = new HashMap<>();
        for (int i = 0; i < program.size(); i++) {
            for (Op.Compute part : program.get(i).computations()) {
                if (completes(part)) {
                    last.put(gradients(part), i);
                    lastOfStage.put(part.stage(), gradients(part));
                }
            }
        }
        shared.forEach(stage -> last.remove(lastOfStage.get(stage)));
        var due = new ArrayList<Op>();
        for (int i = 0; i < program.size(); i++) {
            if (!(program.get(i) instanceof Op.ReleaseParameters)) {
                ops.addAll(due);
                due.clear();
            }
            ops.add(program.get(i));
            for (Op.Compute part : program.get(i).computations()) {
                if (completes(part) && Integer.valueOf(i).equals(last.get(gradients(part)))) {
                    due.add(new Op.ReduceGradients(part.stage()));
                }
            }
        }
        ops.addAll(due);
    }

    List<Op> ops() {
        return ops;
    }

    private boolean completes(Op.Compute op) {
        boolean makesWeightGradient = op instanceof Op.Backward || op instanceof Op.BackwardWeight;
        return makesWeightGradient && !settled.contains(op.stage());
    }

    private Gradients gradients(Op.Compute op) {
        return new Gradients(
                op.stage(),
                reduction == GradientReduction.PER_MICRO_BATCH ? op.unit().microBatch() : 0);
    }
}
