package dev.penstock.actors.rank;

import dev.penstock.actors.spi.RunPlan;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;

/** Describes in words what a rank is doing, or what it is waiting for and from which rank. */
final class ActivityText {
    private ActivityText() {}

    static String of(RunPlan plan, int rank, RankStatus.Moment moment) {
        Schedule schedule = plan.schedule(moment.kind());
        if (moment.position() == plan.program(moment.kind(), rank).ops().size()) {
            return afterTheLastOp(moment);
        }
        return switch (moment.state()) {
            case IDLE -> "idle";
            case UPDATING -> "applies the optimizer";
            case SAVING -> "writes its checkpoint";
            case COMPUTING -> "runs " + text(schedule, op(plan, rank, moment));
            case WAITING_FOR_MEMBERS ->
                    text(schedule, op(plan, rank, moment)) + ": " + members(moment);
            case WAITING_FOR_FRAME -> {
                Op op = op(plan, rank, moment);
                yield text(schedule, op) + " waits for " + source(plan, schedule, rank, op);
            }
            case WAITING_FOR_CREDIT -> {
                Op op = op(plan, rank, moment);
                yield text(schedule, op) + " waits for a free slot at " + peer(plan, rank, op);
            }
            case WAITING_FOR_LINK -> {
                Op op = op(plan, rank, moment);
                yield text(schedule, op) + " waits for the link to " + peer(plan, rank, op);
            }
        };
    }

    private static String afterTheLastOp(RankStatus.Moment moment) {
        return switch (moment.state()) {
            case IDLE -> "idle";
            case UPDATING -> "applies the optimizer";
            case SAVING -> "writes its checkpoint";
            case COMPUTING -> "sums its gradients up and sends them to its mirror";
            case WAITING_FOR_FRAME, WAITING_FOR_CREDIT ->
                    "waits for the ranks that it exchanges mirrored gradients with";
            case WAITING_FOR_LINK -> "waits for the link to its mirror";
            case WAITING_FOR_MEMBERS -> members(moment);
        };
    }

    private static String members(RankStatus.Moment moment) {
        String collective = moment.collective();
        return collective == null ? "waits for others of its group" : collective;
    }

    private static Op op(RunPlan plan, int rank, RankStatus.Moment moment) {
        return plan.program(moment.kind(), rank).ops().get(moment.position());
    }

    private static String text(Schedule schedule, Op op) {
        return OpText.print(op, schedule.shape());
    }

    private static String source(RunPlan plan, Schedule schedule, int rank, Op op) {
        return switch (op) {
            case Op.ReceiveActivation(WorkUnit u) ->
                    text(schedule, new Op.SendActivation(u.onStage(u.stage() - 1)))
                            + " of "
                            + peer(plan, rank, op);
            case Op.ReceiveGradient(WorkUnit u) ->
                    text(schedule, new Op.SendGradient(u.onStage(u.stage() + 1)))
                            + " of "
                            + peer(plan, rank, op);
            case Op.ReduceGradients _ -> "the shared gradient of its peer";
            case Op.Compute _,
                    Op.Overlapped _,
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.SendActivation _,
                    Op.SendGradient _ ->
                    "nothing";
        };
    }

    private static String peer(RunPlan plan, int rank, Op op) {
        return switch (op) {
            case Op.ReceiveActivation(WorkUnit u) -> holder(plan, rank, u.stage() - 1);
            case Op.SendGradient(WorkUnit u) -> holder(plan, rank, u.stage() - 1);
            case Op.ReceiveGradient(WorkUnit u) -> holder(plan, rank, u.stage() + 1);
            case Op.SendActivation(WorkUnit u) -> holder(plan, rank, u.stage() + 1);
            case Op.ReduceGradients _ -> "its peer";
            case Op.Compute _, Op.Overlapped _, Op.ActivationOp _, Op.ParameterOp _ -> "nobody";
        };
    }

    private static String holder(RunPlan plan, int rank, int stage) {
        return "rank %d (stage %d)".formatted(plan.holderOf(stage, rank), stage);
    }
}
