package dev.penstock.actors.supervisor;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;

import java.util.Optional;

/** The other end of a transfer: what a rank that stands at one end waits for. */
final class AwaitedOp {
    private AwaitedOp() {}

    /** The op that an op waits for, where it stands on its rank; empty if it waits for none. */
    static Optional<OpPlace> by(Schedule schedule, Op op) {
        return switch (op) {
            case Op.ReceiveActivation(WorkUnit u) ->
                    place(schedule, new Op.SendActivation(u.onStage(u.stage() - 1)));
            case Op.ReceiveGradient(WorkUnit u) ->
                    place(schedule, new Op.SendGradient(u.onStage(u.stage() + 1)));
            case Op.SendActivation(WorkUnit u) ->
                    place(schedule, new Op.ReceiveActivation(u.onStage(u.stage() + 1)));
            case Op.SendGradient(WorkUnit u) ->
                    place(schedule, new Op.ReceiveGradient(u.onStage(u.stage() - 1)));
            case Op.Compute _,
                    Op.Overlapped _,
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    Optional.empty();
        };
    }

    private static Optional<OpPlace> place(Schedule schedule, Op op) {
        int rank = schedule.placement().rankOf(op.stage());
        int position = schedule.program(rank).ops().indexOf(op);
        return position < 0 ? Optional.empty() : Optional.of(new OpPlace(rank, position, op));
    }
}
