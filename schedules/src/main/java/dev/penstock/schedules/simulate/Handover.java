package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Optional;

/**
 * Which tensor an op waits for and which it passes on. A tensor is numbered by the unit that it is
 * for: activations first, then gradients.
 *
 * <p>With transfers, sends pass on and receives wait. Without, computations do so themselves
 * wherever neighbouring stages are on different ranks.
 */
final class Handover {
    /** No tensor, no channel. */
    static final int NONE = -1;

    private final PipelineShape shape;
    private final Placement placement;
    private final boolean transfers;
    private final int lowestBackward;

    Handover(Schedule schedule) {
        this.shape = schedule.shape();
        this.placement = schedule.placement();
        this.transfers = schedule.hasTransfers();
        this.lowestBackward = schedule.lowestBackward();
    }

    int tensors() {
        return 2 * shape.units();
    }

    /** The tensor that an op cannot start without; of an overlapped pair ask the parts. */
    int needs(Op op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) ->
                    !transfers && placement.crossesBefore(u.stage()) ? activation(u, 0) : NONE;
            case Op.InputGradient backward ->
                    !transfers && placement.crossesAfter(op.stage())
                            ? gradient(backward.unit(), 0)
                            : NONE;
            case Op.ReceiveActivation(WorkUnit u) -> activation(u, 0);
            case Op.ReceiveGradient(WorkUnit u) -> gradient(u, 0);
            case Op.BackwardWeight _,
                    Op.Recompute _,
                    Op.Overlapped _,
                    Op.SendActivation _,
                    Op.SendGradient _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    NONE;
        };
    }

    /** The tensor that is on its way when an op ends; of an overlapped pair ask the parts. */
    int gives(Op op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) ->
                    !transfers && placement.crossesAfter(u.stage()) ? activation(u, 1) : NONE;
            case Op.InputGradient backward ->
                    !transfers && placement.crossesBefore(op.stage()) && op.stage() > lowestBackward
                            ? gradient(backward.unit(), -1)
                            : NONE;
            case Op.SendActivation(WorkUnit u) ->
                    u.stage() + 1 < shape.stages() ? activation(u, 1) : NONE;
            case Op.SendGradient(WorkUnit u) -> u.stage() > 0 ? gradient(u, -1) : NONE;
            case Op.BackwardWeight _,
                    Op.Recompute _,
                    Op.Overlapped _,
                    Op.ReceiveActivation _,
                    Op.ReceiveGradient _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    NONE;
        };
    }

    /** The op that passes on what this op waits for; a split backward is named as a full one. */
    Op giverTo(Op op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) -> new Op.Forward(u.onStage(Math.max(0, u.stage() - 1)));
            case Op.InputGradient backward ->
                    new Op.Backward(backward.unit().onStage(op.stage() + 1));
            case Op.ReceiveActivation(WorkUnit u) ->
                    new Op.SendActivation(u.onStage(Math.max(0, u.stage() - 1)));
            case Op.ReceiveGradient(WorkUnit u) -> new Op.SendGradient(u.onStage(u.stage() + 1));
            case Op.BackwardWeight _,
                    Op.Recompute _,
                    Op.Overlapped _,
                    Op.SendActivation _,
                    Op.SendGradient _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    op;
        };
    }

    /** Whether the op, or a part of it, passes on this tensor. */
    boolean gives(Op op, int tensor) {
        return gives(op) == tensor
                || (op instanceof Op.Overlapped(Op.Forward forward, Op.InputGradient backward)
                        && (gives(forward) == tensor || gives(backward) == tensor));
    }

    private int activation(WorkUnit unit, int stagesOn) {
        return shape.indexOf(unit) + stagesOn * shape.unitsPerStage();
    }

    private int gradient(WorkUnit unit, int stagesOn) {
        return shape.units() + activation(unit, stagesOn);
    }

    /** Number of channel numbers. */
    int channels() {
        return 2 * shape.stages();
    }

    /** The number of the channel of a transfer; none for other ops and beyond the ends. */
    int channel(Op op) {
        return switch (op) {
            case Op.SendActivation(WorkUnit u) -> activations(u.stage() + 1);
            case Op.ReceiveActivation(WorkUnit u) -> activations(u.stage());
            case Op.SendGradient(WorkUnit u) -> gradients(u.stage() - 1);
            case Op.ReceiveGradient(WorkUnit u) -> gradients(u.stage());
            case Op.Compute _, Op.Overlapped _, Op.ParameterOp _, Op.ReduceGradients _ -> NONE;
        };
    }

    /** The number of the channel that a tensor takes. */
    int channelOfTensor(int tensor) {
        int stage = tensor % shape.units() / shape.unitsPerStage();
        return tensor < shape.units() ? activations(stage) : gradients(stage);
    }

    /** The channel with this number; empty for the two beyond the ends of the pipeline. */
    Optional<Channel> channelAt(int number) {
        int stage = number / 2;
        if (number % 2 == 0) {
            return stage == 0 ? Optional.empty() : Optional.of(Channel.activationsInto(stage));
        }
        return stage == shape.stages() - 1
                ? Optional.empty()
                : Optional.of(Channel.gradientsInto(stage));
    }

    private int activations(int toStage) {
        return toStage > 0 && toStage < shape.stages() ? 2 * toStage : NONE;
    }

    private int gradients(int toStage) {
        return toStage >= 0 && toStage < shape.stages() - 1 ? 2 * toStage + 1 : NONE;
    }
}
