package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Says of every rank that stands still what it waits for, and where that is. */
final class StuckRanks {
    private final Schedule schedule;
    private final Handover handover;
    private final int[] position;
    private final @Nullable Collective[] collectives;

    StuckRanks(
            Schedule schedule,
            Handover handover,
            int[] position,
            @Nullable Collective[] collectives) {
        this.schedule = schedule;
        this.handover = handover;
        this.position = position;
        this.collectives = collectives;
    }

    List<Wait> waits() {
        var waits = new ArrayList<Wait>();
        for (RankProgram program : schedule.programs()) {
            int at = position[program.rank()];
            if (at < program.ops().size()) {
                waits.add(wait(new OpPlace(program.rank(), at, program.ops().get(at))));
            }
        }
        return waits;
    }

    private Wait wait(OpPlace place) {
        return switch (place.op()) {
            case Op.SendActivation(WorkUnit u) ->
                    forCredit(place, new Op.ReceiveActivation(u.onStage(u.stage() + 1)));
            case Op.SendGradient(WorkUnit u) ->
                    forCredit(place, new Op.ReceiveGradient(u.onStage(u.stage() - 1)));
            case Op.ReduceGradients(int stage) -> forMember(place, stage);
            case Op.Transfer receive when handover.channel(receive) == Handover.NONE ->
                    new Wait(place, Wait.Reason.TENSOR, receive, Optional.empty());
            case Op.Compute _, Op.ReceiveActivation _, Op.ReceiveGradient _ -> {
                Op awaited = handover.giverTo(place.op());
                yield new Wait(
                        place,
                        Wait.Reason.TENSOR,
                        awaited,
                        ahead(awaited.stage(), awaited::equals));
            }
        };
    }

    /** The credit comes back with the receiver's next receive from the channel. */
    private Wait forCredit(OpPlace place, Op ownReceive) {
        int channel = handover.channel(ownReceive);
        Optional<OpPlace> next =
                ahead(
                        ownReceive.stage(),
                        op -> !Handover.isSend(op) && handover.channel(op) == channel);
        return new Wait(place, Wait.Reason.CREDIT, next.map(OpPlace::op).orElse(ownReceive), next);
    }

    private Wait forMember(OpPlace place, int ownStage) {
        @Nullable Collective collective = collectives[ownStage];
        int missing =
                collective == null
                        ? ownStage
                        : collective.stages().stream()
                                .filter(s -> collective.misses(schedule.placement().rankOf(s)))
                                .findFirst()
                                .orElse(ownStage);
        Op awaited = new Op.ReduceGradients(missing);
        return new Wait(place, Wait.Reason.MEMBERS, awaited, ahead(missing, awaited::equals));
    }

    /** The first such op that the rank of a stage has not run. */
    private Optional<OpPlace> ahead(int stage, Predicate<Op> wanted) {
        if (stage >= schedule.shape().stages()) {
            return Optional.empty();
        }
        RankProgram program = schedule.program(schedule.placement().rankOf(stage));
        for (int i = position[program.rank()]; i < program.ops().size(); i++) {
            if (wanted.test(program.ops().get(i))) {
                return Optional.of(new OpPlace(program.rank(), i, program.ops().get(i)));
            }
        }
        return Optional.empty();
    }
}
