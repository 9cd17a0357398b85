package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.FrozenStages;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Leaves out what stages need not do of which nothing is trained: the whole backward before the
 * first trained stage, with the gradients that would be sent there, and elsewhere the gradients of
 * the weights.
 *
 * <pre>
 * stages 0 and 2 are frozen, 1 is trained
 * 0F0 0F1 0RECV_B0 0B0 0B1           becomes  0F0 0F1
 * 1F0 1RECV_B0 1I0 1SEND_B0 1W0      becomes  1F0 1RECV_B0 1I0 1W0
 * 2F0 2B0 2SEND_B0 2REDUCE_GRAD      becomes  2F0 2I0 2SEND_B0
 * </pre>
 */
public final class OmitFrozen {
    private OmitFrozen() {}

    /** The schedule without these ops. */
    public static Schedule from(Schedule schedule, FrozenStages frozen) {
        if (frozen.stages().isEmpty()) {
            return schedule;
        }
        return schedule.withPrograms(
                schedule.programs().stream()
                        .map(program -> new RankProgram(program.rank(), kept(program, frozen)))
                        .toList());
    }

    private static List<Op> kept(RankProgram program, FrozenStages frozen) {
        var kept = new ArrayList<Op>();
        program.ops().forEach(op -> kept(op, frozen).ifPresent(kept::add));
        return kept;
    }

    private static Optional<? extends Op> kept(Op op, FrozenStages frozen) {
        return switch (op) {
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    Optional.of(
                            kept(partner, frozen)
                                    .<Op>map(left -> new Op.Overlapped(forward, left))
                                    .orElse(forward));
            case Op.Compute compute -> kept(compute, frozen);
            case Op.ReduceGradients _ -> Optional.of(op).filter(_ -> frozen.trains(op.stage()));
            case Op.ActivationOp _, Op.ReceiveGradient _ ->
                    Optional.of(op).filter(_ -> frozen.hasBackward(op.stage()));
            case Op.SendGradient _ ->
                    Optional.of(op).filter(_ -> frozen.hasBackward(op.stage() - 1));
            case Op.SendActivation _, Op.ReceiveActivation _, Op.ParameterOp _ -> Optional.of(op);
        };
    }

    private static Optional<? extends Op.Compute> kept(Op.Compute op, FrozenStages frozen) {
        return switch (op) {
            case Op.Forward _ -> Optional.of(op);
            case Op.InputGradient backward -> kept(backward, frozen);
            case Op.BackwardWeight _ -> Optional.of(op).filter(_ -> frozen.trains(op.stage()));
            case Op.Recompute _ -> Optional.of(op).filter(_ -> frozen.hasBackward(op.stage()));
        };
    }

    private static Optional<Op.InputGradient> kept(Op.InputGradient op, FrozenStages frozen) {
        if (!frozen.hasBackward(op.stage())) {
            return Optional.empty();
        }
        WorkUnit unit = op.unit();
        return Optional.of(frozen.trains(op.stage()) ? op : new Op.BackwardInput(unit));
    }
}
