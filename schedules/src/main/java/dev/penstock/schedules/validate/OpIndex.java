package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.util.BitSet;

/** Where every op stands: its first place on the rank where it belongs. */
final class OpIndex {
    /** Not on the rank where it belongs. */
    static final int NONE = -1;

    private final PipelineShape shape;

    /** 1 + position, by {@link #key}; 0 for none. */
    private final int[] positions;

    /** Last backward of each stage. */
    private final int[] lastBackward;

    private final BitSet elsewhere = new BitSet();

    OpIndex(Schedule schedule) {
        this.shape = schedule.shape();
        this.positions = new int[OpKind.values().length * shape.units() + shape.stages()];
        this.lastBackward = new int[shape.stages()];
        for (RankProgram program : schedule.programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                if (exists(op)) {
                    add(program.rank(), i, op, schedule.placement().rankOf(op.stage()));
                }
            }
        }
    }

    private void add(int rank, int position, Op op, int rightRank) {
        if (rank != rightRank) {
            elsewhere.set(key(op));
            return;
        }
        if (positions[key(op)] == 0) {
            positions[key(op)] = position + 1;
        }
        if (op instanceof Op.Backward) {
            lastBackward[op.stage()] = position + 1;
        }
    }

    /** Whether the shape has the op's stage, micro-batch and slice. */
    boolean exists(Op op) {
        return switch (op) {
            case Op.UnitOp unitOp -> shape.contains(unitOp.unit());
            case Op.ReduceGradients(int stage) -> stage >= 0 && stage < shape.stages();
        };
    }

    /** First position of an existing op on the rank where it belongs. */
    int positionOf(Op op) {
        return positions[key(op)] - 1;
    }

    /** The same by kind and number of the unit. */
    int positionOf(OpKind kind, int unit) {
        return positions[key(kind, unit)] - 1;
    }

    /** Whether it stands nowhere, not even on a wrong rank. */
    boolean isMissing(OpKind kind, int unit) {
        return positions[key(kind, unit)] == 0 && !elsewhere.get(key(kind, unit));
    }

    boolean isReductionMissing(int stage) {
        int key = OpKind.values().length * shape.units() + stage;
        return positions[key] == 0 && !elsewhere.get(key);
    }

    int lastBackwardOf(int stage) {
        return lastBackward[stage] - 1;
    }

    private int key(Op op) {
        return switch (op) {
            case Op.UnitOp unitOp -> key(OpKind.of(unitOp), shape.indexOf(unitOp.unit()));
            case Op.ReduceGradients(int stage) -> OpKind.values().length * shape.units() + stage;
        };
    }

    private int key(OpKind kind, int unit) {
        return kind.ordinal() * shape.units() + unit;
    }
}
