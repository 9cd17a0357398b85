package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.FrozenStages;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpKind;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** Every op that belongs in the schedule is there once, on its rank, and no other is. */
final class Completeness {
    private final Schedule schedule;
    private final PipelineShape shape;
    private final Placement placement;
    private final OpIndex index;
    private final boolean training;
    private final boolean lowered;
    private final boolean transfers;
    private final boolean replicated;
    private final FrozenStages frozen;
    private final Set<Integer> sharing;
    private final List<Violation> violations = new ArrayList<>();

    Completeness(Schedule schedule, Conditions conditions, OpIndex index) {
        this.schedule = schedule;
        this.shape = schedule.shape();
        this.placement = schedule.placement();
        this.index = index;
        this.training = conditions.passKind() == PassKind.TRAINING;
        // the peers of a wired order are replicas of each other
        this.replicated = conditions.replicated() || shape.peers() > 1;
        this.frozen = conditions.frozen();
        this.lowered = !schedule.isComputeOnly();
        this.transfers = schedule.hasTransfers();
        this.sharing =
                schedule.sharedGroups().stream()
                        .flatMap(List::stream)
                        .collect(Collectors.toUnmodifiableSet());
    }

    List<Violation> violations() {
        for (RankProgram program : schedule.programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                var place = new OpPlace(program.rank(), i, op);
                switch (op) {
                    case Op.Overlapped(Op.Forward forward, Op.Compute partner) -> {
                        present(place, forward);
                        present(place, partner);
                    }
                    case Op.UnitOp _, Op.ParameterOp _, Op.ReduceGradients _ -> present(place, op);
                }
            }
        }
        for (int unit = 0; unit < shape.units(); unit++) {
            for (OpKind kind : OpKind.values()) {
                if (index.isMissing(kind, unit) && required(kind, unit)) {
                    WorkUnit needed = shape.unitAt(unit);
                    missing(placement.rankOf(needed), kind.on(needed));
                }
            }
        }
        if (training && lowered) {
            for (int stage = 0; stage < shape.stages(); stage++) {
                if (sharing.contains(stage) || (replicated && frozen.trains(stage))) {
                    missingReductions(stage);
                }
            }
        }
        return violations;
    }

    private void missingReductions(int stage) {
        for (int rank : placement.ranksOf(stage)) {
            if (index.isReductionMissing(stage, rank)) {
                missing(rank, new Op.ReduceGradients(stage));
            }
        }
    }

    /** Whether a complete schedule has this op; a backward is there in one or in two. */
    private boolean required(OpKind kind, int unit) {
        boolean split =
                !index.isMissing(OpKind.BACKWARD_INPUT, unit)
                        || !index.isMissing(OpKind.BACKWARD_WEIGHT, unit);
        boolean wanted =
                switch (kind) {
                    case BACKWARD -> !split;
                    case BACKWARD_INPUT, BACKWARD_WEIGHT ->
                            split && index.isMissing(OpKind.BACKWARD, unit);
                    case RECOMPUTE -> false;
                    case OFFLOAD -> !index.isMissing(OpKind.RELOAD, unit);
                    case RELOAD -> !index.isMissing(OpKind.OFFLOAD, unit);
                    case FORWARD,
                            SEND_ACTIVATION,
                            RECEIVE_ACTIVATION,
                            SEND_GRADIENT,
                            RECEIVE_GRADIENT ->
                            true;
                };
        return wanted && belongs(kind, unit);
    }

    /**
     * @param op the op at the place, or one half of the pair there
     */
    private void present(OpPlace place, Op op) {
        if (!index.exists(op)) {
            violations.add(new Violation.UnknownUnit(place, at(place) + unknown()));
            return;
        }
        if (!belongs(op)) {
            violations.add(new Violation.Unexpected(place, at(place) + needless(op)));
        } else if (!index.belongsOn(place.rank(), op)) {
            wrongRank(place, op);
        } else if (isPartBesideWhole(op)) {
            violations.add(
                    new Violation.Unexpected(
                            place, at(place) + "has a full backward beside it: one or the other"));
        } else if (op instanceof Op.ActivationOp moved
                && !index.isMissing(OpKind.RECOMPUTE, shape.indexOf(moved.unit()))) {
            violations.add(
                    new Violation.Unexpected(
                            place,
                            at(place)
                                    + "has a recompute beside it, so that the unit keeps nothing to move: one or the other"));
        } else if (isUnique(op) && index.positionOf(op, place.rank()) != place.position()) {
            violations.add(
                    new Violation.Duplicate(
                            place,
                            at(place)
                                    + "appears twice, first at op %d"
                                            .formatted(index.positionOf(op, place.rank()))));
        }
    }

    private void wrongRank(OpPlace place, Op op) {
        boolean ofUnit = op instanceof Op.UnitOp;
        int rightRank =
                op instanceof Op.UnitOp unitOp
                        ? placement.rankOf(unitOp.unit())
                        : placement.ranksOf(op.stage()).getFirst();
        String right =
                shape.peers() == 1
                        ? "is of stage %d, which is placed on rank %d"
                                .formatted(op.stage(), rightRank)
                        : ofUnit
                                ? "is of a micro-batch that is wired to rank %d"
                                        .formatted(rightRank)
                                : "is of stage %d, which is held by ranks %s"
                                        .formatted(op.stage(), placement.ranksOf(op.stage()));
        violations.add(new Violation.WrongRank(place, rightRank, at(place) + right));
    }

    private boolean isPartBesideWhole(Op op) {
        return (op instanceof Op.BackwardInput || op instanceof Op.BackwardWeight)
                && op instanceof Op.Compute part
                && !index.isMissing(OpKind.BACKWARD, shape.indexOf(part.unit()));
    }

    /**
     * Whether a schedule has it once: gradients may be summed more often, parameters come and go.
     */
    private boolean isUnique(Op op) {
        return switch (op) {
            case Op.UnitOp _, Op.Overlapped _ -> true;
            case Op.ReduceGradients _, Op.ParameterOp _ -> false;
        };
    }

    private void missing(int rank, Op op) {
        var place = new OpPlace(rank, schedule.program(rank).ops().size(), op);
        violations.add(
                new Violation.Missing(
                        place, "rank %d has no %s".formatted(rank, OpText.print(op, shape))));
    }

    private boolean belongs(Op op) {
        return switch (op) {
            case Op.UnitOp unitOp -> belongs(OpKind.of(unitOp), shape.indexOf(unitOp.unit()));
            case Op.Overlapped _, Op.ReduceGradients _ -> training;
            case Op.ParameterOp _ -> true;
        };
    }

    private boolean belongs(OpKind kind, int unit) {
        int stage = unit / shape.unitsPerStage();
        return switch (kind) {
            case FORWARD -> true;
            case BACKWARD, BACKWARD_INPUT, RECOMPUTE, OFFLOAD, RELOAD ->
                    training && frozen.hasBackward(stage);
            case BACKWARD_WEIGHT -> training && frozen.trains(stage);
            case SEND_ACTIVATION -> transfers && crossesAfter(unit);
            case RECEIVE_ACTIVATION -> transfers && crossesBefore(unit);
            case SEND_GRADIENT ->
                    transfers && training && crossesBefore(unit) && frozen.hasBackward(stage - 1);
            case RECEIVE_GRADIENT ->
                    transfers && training && crossesAfter(unit) && frozen.hasBackward(stage);
        };
    }

    private boolean crossesBefore(int unit) {
        return shape.peers() == 1
                ? placement.crossesBefore(unit / shape.unitsPerStage())
                : placement.crossesBefore(shape.unitAt(unit));
    }

    private boolean crossesAfter(int unit) {
        return shape.peers() == 1
                ? placement.crossesAfter(unit / shape.unitsPerStage())
                : placement.crossesAfter(shape.unitAt(unit));
    }

    private String unknown() {
        return "does not exist: stages are 0 to %d, micro-batches 0 to %d, slices 0 to %d"
                .formatted(shape.stages() - 1, shape.microBatches() - 1, shape.slices() - 1);
    }

    private String needless(Op op) {
        return switch (op) {
            case Op.BackwardWeight _ when training ->
                    "has no weights: nothing of its stage is trained";
            case Op.Compute _ when training ->
                    "is a backward before the first stage that trains anything";
            case Op.SendGradient _ when training && !frozen.hasBackward(op.stage() - 1) ->
                    "goes to a stage that neither trains anything nor passes gradients on";
            case Op.ReceiveGradient _ when training && !frozen.hasBackward(op.stage()) ->
                    "comes to a stage that neither trains anything nor passes gradients on";
            case Op.ActivationOp _ when training -> "moves what no backward reads";
            case Op.Compute _, Op.ActivationOp _ -> "has no place in a forward-only schedule";
            case Op.SendGradient _, Op.ReceiveGradient _ when !training ->
                    "has no place in a forward-only schedule";
            case Op.ReceiveActivation _, Op.ReceiveGradient _ ->
                    "has no partner: that neighbour is on the same rank, or is none;"
                            + " a receive carries the number of the stage that receives";
            case Op.Transfer _ -> "has no partner: that neighbour is on the same rank, or is none";
            case Op.Overlapped _, Op.ParameterOp _, Op.ReduceGradients _ ->
                    "has no place in a forward-only schedule";
        };
    }

    private String at(OpPlace place) {
        return "rank %d, op %d: %s "
                .formatted(place.rank(), place.position(), OpText.print(place.op(), shape));
    }
}
