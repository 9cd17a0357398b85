package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Channels;
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
    static final int NONE = Channels.NONE;

    private final PipelineShape shape;
    private final Placement placement;
    private final Channels channels;
    private final boolean transfers;
    private final int lowestBackward;

    Handover(Schedule schedule) {
        this.shape = schedule.shape();
        this.placement = schedule.placement();
        this.channels = new Channels(schedule);
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
                    !transfers && placement.crossesBefore(u) ? activation(u, 0) : NONE;
            case Op.InputGradient backward ->
                    !transfers && placement.crossesAfter(backward.unit())
                            ? gradient(backward.unit(), 0)
                            : NONE;
            case Op.ReceiveActivation(WorkUnit u) -> activation(u, 0);
            case Op.ReceiveGradient(WorkUnit u) -> gradient(u, 0);
            case Op.BackwardWeight _,
                    Op.Recompute _,
                    Op.Overlapped _,
                    Op.SendActivation _,
                    Op.SendGradient _,
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    NONE;
        };
    }

    /** The tensor that is on its way when an op ends; of an overlapped pair ask the parts. */
    int gives(Op op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) ->
                    !transfers && placement.crossesAfter(u) ? activation(u, 1) : NONE;
            case Op.InputGradient backward ->
                    !transfers
                                    && placement.crossesBefore(backward.unit())
                                    && op.stage() > lowestBackward
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
                    Op.ActivationOp _,
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
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    op;
        };
    }

    /** Whether the op, or a part of it, passes on this tensor. */
    boolean gives(Op op, int tensor) {
        return gives(op) == tensor
                || (op instanceof Op.Overlapped(Op.Forward forward, Op.Compute partner)
                        && (gives(forward) == tensor || gives(partner) == tensor));
    }

    private int activation(WorkUnit unit, int stagesOn) {
        return shape.indexOf(unit) + stagesOn * shape.unitsPerStage();
    }

    private int gradient(WorkUnit unit, int stagesOn) {
        return shape.units() + activation(unit, stagesOn);
    }

    /** Number of channel numbers. */
    int channels() {
        return channels.count();
    }

    /** The number of the channel of a transfer; none for other ops and beyond the ends. */
    int channel(Op op) {
        return switch (op) {
            case Op.SendActivation(WorkUnit u) ->
                    channels.activationsInto(u.stage() + 1, u.microBatch());
            case Op.ReceiveActivation(WorkUnit u) ->
                    channels.activationsInto(u.stage(), u.microBatch());
            case Op.SendGradient(WorkUnit u) ->
                    channels.gradientsInto(u.stage() - 1, u.microBatch());
            case Op.ReceiveGradient(WorkUnit u) ->
                    channels.gradientsInto(u.stage(), u.microBatch());
            case Op.Compute _,
                    Op.Overlapped _,
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    NONE;
        };
    }

    /** The number of the channel that a tensor takes. */
    int channelOfTensor(int tensor) {
        int unit = tensor % shape.units();
        int stage = unit / shape.unitsPerStage();
        int microBatch = unit % shape.unitsPerStage() / shape.slices();
        return tensor < shape.units()
                ? channels.activationsInto(stage, microBatch)
                : channels.gradientsInto(stage, microBatch);
    }

    /** The channel with this number; empty for the two beyond the ends of one pipeline. */
    Optional<Channel> channelAt(int number) {
        return channels.at(number);
    }
}
