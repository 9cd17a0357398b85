package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.ProgramWriter;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The transfers of a computation: neighbouring stages on one rank hand over without any.
 *
 * @param placement which rank has which stage
 * @param lowestBackward the stage whose input's gradient nobody wants
 */
record Transfers(Placement placement, int lowestBackward) {
    Transfers(Schedule schedule) {
        this(schedule.placement(), schedule.lowestBackward());
    }

    /** Writes an op with its receives right before and its sends right after it. */
    void writeAround(Op op, ProgramWriter program) {
        receivesBefore(op, program::add);
        program.add(op);
        sendsAfter(op, program::add);
    }

    /** What an op cannot start without. */
    void receivesBefore(Op op, Consumer<Op> receives) {
        for (Op.Compute part : op.computations()) {
            @Nullable Op receive = receiveBefore(part);
            if (receive != null) {
                receives.accept(receive);
            }
        }
    }

    /** What an op makes for others. */
    void sendsAfter(Op op, Consumer<Op> sends) {
        for (Op.Compute part : op.computations()) {
            @Nullable Op send = sendAfter(part);
            if (send != null) {
                sends.accept(send);
            }
        }
    }

    private @Nullable Op receiveBefore(Op.Compute op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) when placement.crossesBefore(u) ->
                    new Op.ReceiveActivation(u);
            case Op.InputGradient backward when placement.crossesAfter(op.unit()) ->
                    new Op.ReceiveGradient(backward.unit());
            case Op.Compute _ -> null;
        };
    }

    private @Nullable Op sendAfter(Op.Compute op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) when placement.crossesAfter(u) -> new Op.SendActivation(u);
            case Op.InputGradient backward
                    when placement.crossesBefore(op.unit()) && op.stage() > lowestBackward ->
                    new Op.SendGradient(backward.unit());
            case Op.Compute _ -> null;
        };
    }
}
