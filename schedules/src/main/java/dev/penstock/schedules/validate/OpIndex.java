package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.util.Arrays;
import java.util.BitSet;

/** Where every op stands: its first place on the rank where it belongs. */
final class OpIndex {
    /** Not on the rank where it belongs. */
    static final int NONE = -1;

    private final PipelineShape shape;
    private final Placement placement;

    /** By {@link #key}: first position on the right rank. */
    private final int[] positions;

    /** By {@link #key}: whether it stands on a wrong rank. */
    private final BitSet misplaced = new BitSet();

    /** By stage and peer: the last op that adds to the gradients of its weights. */
    private final int[] lastBackwards;

    /** By stage and peer. */
    private final int[] lastReductions;

    OpIndex(Schedule schedule) {
        this.shape = schedule.shape();
        this.placement = schedule.placement();
        this.positions = nowhere(OpKind.COUNT * shape.units() + shape.stagesOfPeers());
        this.lastBackwards = nowhere(shape.stagesOfPeers());
        this.lastReductions = nowhere(shape.stagesOfPeers());
        for (RankProgram program : schedule.programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                switch (op) {
                    case Op.Overlapped(Op.Forward forward, Op.Compute partner) -> {
                        add(program.rank(), forward, i);
                        add(program.rank(), partner, i);
                    }
                    case Op.UnitOp _, Op.ReduceGradients _ -> add(program.rank(), op, i);
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

    private void add(int rank, Op op, int position) {
        if (!exists(op)) {
            return;
        }
        int key = key(op, rank);
        if (!belongsOn(rank, op)) {
            misplaced.set(key);
            return;
        }
        if (positions[key] == NONE) {
            positions[key] = position;
        }
        if (op instanceof Op.Backward || op instanceof Op.BackwardWeight) {
            lastBackwards[shape.indexOf(op.stage(), rank)] = position;
        } else if (op instanceof Op.ReduceGradients) {
            lastReductions[shape.indexOf(op.stage(), rank)] = position;
        }
    }

    /** Whether the shape has the op's stage, micro-batch and slice. */
    boolean exists(Op op) {
        return switch (op) {
            case Op.UnitOp unitOp -> shape.contains(unitOp.unit());
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    exists(forward) && exists(partner);
            case Op.ParameterOp _, Op.ReduceGradients _ ->
                    op.stage() >= 0 && op.stage() < shape.stages();
        };
    }

    /** Whether a rank is the one, or one of those, where an existing op belongs. */
    boolean belongsOn(int rank, Op op) {
        return switch (op) {
            case Op.UnitOp unitOp -> placement.rankOf(unitOp.unit()) == rank;
            case Op.Overlapped(Op.Forward forward, Op.Compute _) -> belongsOn(rank, forward);
            case Op.ParameterOp _, Op.ReduceGradients _ -> placement.holds(rank, op.stage());
        };
    }

    /** First position of an existing op of a unit, on its rank, or of a reduction on this one. */
    int positionOf(Op op, int rank) {
        return positions[key(op, rank)];
    }

    /** The same by kind and number of the unit. */
    int positionOf(OpKind kind, int unit) {
        return positions[key(kind, unit)];
    }

    /** Whether it stands nowhere, not even on a wrong rank. */
    boolean isMissing(OpKind kind, int unit) {
        return isMissing(key(kind, unit));
    }

    /** Whether the reduction of a stage and of the rank's peer stands nowhere. */
    boolean isReductionMissing(int stage, int rank) {
        return isMissing(key(stage, rank));
    }

    int lastReductionOf(int stage, int rank) {
        return lastReductions[shape.indexOf(stage, rank)];
    }

    int lastBackwardOf(int stage, int rank) {
        return lastBackwards[shape.indexOf(stage, rank)];
    }

    private boolean isMissing(int key) {
        return positions[key] == NONE && !misplaced.get(key);
    }

    private int key(Op op, int rank) {
        return switch (op) {
            case Op.UnitOp unitOp -> key(OpKind.of(unitOp), shape.indexOf(unitOp.unit()));
            case Op.ReduceGradients(int stage) -> key(stage, rank);
            case Op.Overlapped _, Op.ParameterOp _ ->
                    throw new IllegalArgumentException(op + " has no place of its own");
        };
    }

    private int key(OpKind kind, int unit) {
        return kind.ordinal() * shape.units() + unit;
    }

    private int key(int reducingStage, int rank) {
        return OpKind.COUNT * shape.units() + shape.indexOf(reducingStage, rank);
    }
}
