package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.util.Arrays;
import java.util.BitSet;

/** Where every op stands: its first place on the rank where it belongs. */
final class OpIndex {
    /** Not on the rank where it belongs. */
    static final int NONE = -1;

    private final PipelineShape shape;

    /** By {@link #key}: first position on the right rank. */
    private final int[] positions;

    /** By {@link #key}: whether it stands on a wrong rank. */
    private final BitSet misplaced = new BitSet();

    /** By stage: the last op that adds to the gradients of its weights. */
    private final int[] lastBackwards;

    /** By stage. */
    private final int[] lastReductions;

    OpIndex(Schedule schedule) {
        this.shape = schedule.shape();
        this.positions = nowhere(OpKind.COUNT * shape.units() + shape.stages());
        this.lastBackwards = nowhere(shape.stages());
        this.lastReductions = nowhere(shape.stages());
        for (RankProgram program : schedule.programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                switch (op) {
                    case Op.Overlapped(Op.Forward forward, Op.InputGradient backward) -> {
                        add(schedule, program.rank(), forward, i);
                        add(schedule, program.rank(), backward, i);
                    }
                    case Op.UnitOp _, Op.ReduceGradients _ -> add(schedule, program.rank(), op, i);
                    case Op.ParameterOp _ -> {}
                }
            }
        }
    }

    private static int[] nowhere(int size) {
        var positions = new int[size];
        Arrays.fill(positions, NONE);
        return positions;
    }

    private void add(Schedule schedule, int rank, Op op, int position) {
        if (!exists(op)) {
            return;
        }
        int key = key(op);
        if (schedule.placement().rankOf(op.stage()) != rank) {
            misplaced.set(key);
            return;
        }
        if (positions[key] == NONE) {
            positions[key] = position;
        }
        if (op instanceof Op.Backward || op instanceof Op.BackwardWeight) {
            lastBackwards[op.stage()] = position;
        } else if (op instanceof Op.ReduceGradients) {
            lastReductions[op.stage()] = position;
        }
    }

    /** Whether the shape has the op's stage, micro-batch and slice. */
    boolean exists(Op op) {
        return switch (op) {
            case Op.UnitOp unitOp -> shape.contains(unitOp.unit());
            case Op.Overlapped(Op.Forward forward, Op.InputGradient backward) ->
                    exists(forward) && exists(backward);
            case Op.ParameterOp _, Op.ReduceGradients _ ->
                    op.stage() >= 0 && op.stage() < shape.stages();
        };
    }

    /** First position of an existing op of a unit, or of a reduction, on its rank. */
    int positionOf(Op op) {
        return positions[key(op)];
    }

    /** The same by kind and number of the unit. */
    int positionOf(OpKind kind, int unit) {
        return positions[key(kind, unit)];
    }

    /** Whether it stands nowhere, not even on a wrong rank. */
    boolean isMissing(OpKind kind, int unit) {
        return isMissing(key(kind, unit));
    }

    /** Whether the stage's reduction stands nowhere. */
    boolean isReductionMissing(int stage) {
        return isMissing(key(stage));
    }

    int lastReductionOf(int stage) {
        return lastReductions[stage];
    }

    int lastBackwardOf(int stage) {
        return lastBackwards[stage];
    }

    private boolean isMissing(int key) {
        return positions[key] == NONE && !misplaced.get(key);
    }

    private int key(Op op) {
        return switch (op) {
            case Op.UnitOp unitOp -> key(OpKind.of(unitOp), shape.indexOf(unitOp.unit()));
            case Op.ReduceGradients(int stage) -> key(stage);
            case Op.Overlapped _, Op.ParameterOp _ ->
                    throw new IllegalArgumentException(op + " has no place of its own");
        };
    }

    private int key(OpKind kind, int unit) {
        return kind.ordinal() * shape.units() + unit;
    }

    private int key(int reducingStage) {
        return OpKind.COUNT * shape.units() + reducingStage;
    }
}
