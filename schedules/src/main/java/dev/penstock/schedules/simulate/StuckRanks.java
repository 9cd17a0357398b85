package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Says of every rank that stands still what it waits for, and where that is. */
final class StuckRanks {
    private final Schedule schedule;
    private final Handover handover;
    private final int[] position;
    private final @Nullable SharedReduction[] collectives;
    private final IntPredicate hasArrived;

    StuckRanks(
            Schedule schedule,
            Handover handover,
            int[] position,
            @Nullable SharedReduction[] collectives,
            IntPredicate hasArrived) {
        this.schedule = schedule;
        this.handover = handover;
        this.position = position;
        this.collectives = collectives;
        this.hasArrived = hasArrived;
    }

    List<BlockedOp> waits() {
        var waits = new ArrayList<BlockedOp>();
        for (RankProgram program : schedule.programs()) {
            int at = position[program.rank()];
            if (at < program.ops().size()) {
                waits.add(wait(new OpPlace(program.rank(), at, program.ops().get(at))));
            }
        }
        return waits;
    }

    private BlockedOp wait(OpPlace place) {
        return wait(place, place.op());
    }

    private BlockedOp wait(OpPlace place, Op op) {
        return switch (op) {
            case Op.SendActivation(WorkUnit u) ->
                    forCredit(place, new Op.ReceiveActivation(u.onStage(u.stage() + 1)));
            case Op.SendGradient(WorkUnit u) ->
                    forCredit(place, new Op.ReceiveGradient(u.onStage(u.stage() - 1)));
            case Op.ReduceGradients(int stage) -> forMember(place, stage);
            case Op.Transfer receive when handover.channel(receive) == Handover.NONE ->
                    new BlockedOp(place, BlockedOp.Reason.TENSOR, receive, Optional.empty());
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    wait(place, lacks(forward) ? forward : partner);
            case Op.Compute _, Op.ReceiveActivation _, Op.ReceiveGradient _ -> forTensor(place, op);
            case Op.ActivationOp _, Op.ParameterOp _ ->
                    throw new IllegalStateException(op + " waits for nobody");
        };
    }

    private boolean lacks(Op op) {
        int tensor = handover.needs(op);
        return tensor != Handover.NONE && !hasArrived.test(tensor);
    }

    private BlockedOp forTensor(OpPlace place, Op op) {
        Op giver = handover.giverTo(op);
        int tensor = handover.needs(op);
        Optional<OpPlace> at = ahead(giver, o -> handover.gives(o, tensor));
        return new BlockedOp(place, BlockedOp.Reason.TENSOR, at.map(OpPlace::op).orElse(giver), at);
    }

    /** The credit comes back with the receiver's next receive from the channel. */
    private BlockedOp forCredit(OpPlace place, Op ownReceive) {
        int channel = handover.channel(ownReceive);
        Optional<OpPlace> next =
                ahead(ownReceive, op -> !op.isSend() && handover.channel(op) == channel);
        return new BlockedOp(
                place, BlockedOp.Reason.CREDIT, next.map(OpPlace::op).orElse(ownReceive), next);
    }

    private BlockedOp forMember(OpPlace place, int ownStage) {
        @Nullable SharedReduction collective = collectives[ownStage];
        int missing = ownStage;
        int rank = place.rank();
        if (collective != null) {
            rank =
                    collective.ranks().stream()
                            .filter(collective::misses)
                            .findFirst()
                            .orElse(place.rank());
            int late = rank;
            missing =
                    collective.stages().stream()
                            .filter(stage -> schedule.placement().holds(late, stage))
                            .findFirst()
                            .orElse(ownStage);
        }
        Op awaited = new Op.ReduceGradients(missing);
        RankProgram program = schedule.program(rank);
        int last = program.lastReductionOf(missing);
        return new BlockedOp(
                place,
                BlockedOp.Reason.MEMBERS,
                awaited,
                last < position[program.rank()]
                        ? Optional.empty()
                        : Optional.of(new OpPlace(program.rank(), last, awaited)));
    }

    /** The first such op that the rank of a unit has not run. */
    private Optional<OpPlace> ahead(Op of, Predicate<Op> wanted) {
        if (!(of instanceof Op.UnitOp wired) || !schedule.shape().contains(wired.unit())) {
            return Optional.empty();
        }
        RankProgram program = schedule.program(schedule.placement().rankOf(wired.unit()));
        for (int i = position[program.rank()]; i < program.ops().size(); i++) {
            if (wanted.test(program.ops().get(i))) {
                return Optional.of(new OpPlace(program.rank(), i, program.ops().get(i)));
            }
        }
        return Optional.empty();
    }
}
