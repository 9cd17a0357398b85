package dev.penstock.schedules.ir;

import java.util.List;

/**
 * What one rank does in one step, in its order. Ops are kept in eight bytes each and made when they
 * are looked at.
 */
public record RankProgram(int rank, List<Op> ops) {
    public RankProgram {
        ops = PackedOps.copyOf(ops);
    }

    /** Position of the last {@link Op.ReduceGradients} of a stage; -1 if there is none. */
    public int lastReductionOf(int stage) {
        return ops.lastIndexOf(new Op.ReduceGradients(stage));
    }
}
