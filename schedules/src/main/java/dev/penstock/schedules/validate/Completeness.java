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
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

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
        this.replicated = conditions.replicated();
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
                    case Op.Overlapped(Op.Forward forward, Op.InputGradient backward) -> {
                        present(place, forward);
                        present(place, backward);
                    }
                    case Op.UnitOp _, Op.ParameterOp _, Op.ReduceGradients _ -> present(place, op);
                }
            }
        }
        for (int unit = 0; unit < shape.units(); unit++) {
            for (OpKind kind : OpKind.values()) {
                if (index.isMissing(kind, unit) && required(kind, unit)) {
                    missing(kind.on(shape.unitAt(unit)));
                }
            }
        }
        if (training && lowered) {
            IntStream.range(0, shape.stages())
                    .filter(
                            stage ->
                                    sharing.contains(stage) || (replicated && frozen.trains(stage)))
                    .filter(index::isReductionMissing)
                    .forEach(stage -> missing(new Op.ReduceGradients(stage)));
        }
        return violations;
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
                    case FORWARD,
                            SEND_ACTIVATION,
                            RECEIVE_ACTIVATION,
                            SEND_GRADIENT,
                            RECEIVE_GRADIENT ->
                            true;
                };
        return wanted && belongs(kind, unit / shape.unitsPerStage());
    }

    /**
     * @param op the op at the place, or one half of the pair there
     */
    private void present(OpPlace place, Op op) {
        if (!index.exists(op)) {
            violations.add(new Violation.UnknownUnit(place, at(place) + unknown()));
            return;
        }
        int rightRank = placement.rankOf(op.stage());
        if (!belongs(op)) {
            violations.add(new Violation.Unexpected(place, at(place) + needless(op)));
        } else if (rightRank != place.rank()) {
            violations.add(
                    new Violation.WrongRank(
                            place,
                            rightRank,
                            at(place)
                                    + "is of stage %d, which is placed on rank %d"
                                            .formatted(op.stage(), rightRank)));
        } else if (isPartBesideWhole(op)) {
            violations.add(
                    new Violation.Unexpected(
                            place, at(place) + "has a full backward beside it: one or the other"));
        } else if (isUnique(op) && index.positionOf(op) != place.position()) {
            violations.add(
                    new Violation.Duplicate(
                            place,
                            at(place)
                                    + "appears twice, first at op %d"
                                            .formatted(index.positionOf(op))));
        }
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

    private void missing(Op op) {
        int rank = placement.rankOf(op.stage());
        var place = new OpPlace(rank, schedule.program(rank).ops().size(), op);
        violations.add(
                new Violation.Missing(
                        place, "rank %d has no %s".formatted(rank, OpText.print(op, shape))));
    }

    private boolean belongs(Op op) {
        return switch (op) {
            case Op.UnitOp unitOp -> belongs(OpKind.of(unitOp), op.stage());
            case Op.Overlapped _, Op.ReduceGradients _ -> training;
            case Op.ParameterOp _ -> true;
        };
    }

    private boolean belongs(OpKind kind, int stage) {
        return switch (kind) {
            case FORWARD -> true;
            case BACKWARD, BACKWARD_INPUT, RECOMPUTE -> training && frozen.hasBackward(stage);
            case BACKWARD_WEIGHT -> training && frozen.trains(stage);
            case SEND_ACTIVATION -> transfers && placement.crossesAfter(stage);
            case RECEIVE_ACTIVATION -> transfers && placement.crossesBefore(stage);
            case SEND_GRADIENT ->
                    transfers
                            && training
                            && placement.crossesBefore(stage)
                            && frozen.hasBackward(stage - 1);
            case RECEIVE_GRADIENT ->
                    transfers
                            && training
                            && placement.crossesAfter(stage)
                            && frozen.hasBackward(stage);
        };
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
            case Op.Compute _ -> "has no place in a forward-only schedule";
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
