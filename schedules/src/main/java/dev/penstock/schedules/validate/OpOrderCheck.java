package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpKind;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;

/**
 * On each rank, an op comes after those of the same rank that it depends on. Ops that are missing
 * or on a wrong rank are for {@link Completeness} to name.
 */
final class OpOrderCheck {
    private final Schedule schedule;
    private final PipelineShape shape;
    private final Placement placement;
    private final OpIndex index;
    private final List<Violation> violations = new ArrayList<>();

    OpOrderCheck(Schedule schedule, OpIndex index) {
        this.schedule = schedule;
        this.shape = schedule.shape();
        this.placement = schedule.placement();
        this.index = index;
    }

    List<Violation> violations() {
        for (RankProgram program : schedule.programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                var place = new OpPlace(program.rank(), i, op);
                switch (op) {
                    case Op.Overlapped(Op.Forward forward, Op.Compute partner) -> {
                        judge(place, forward);
                        judge(place, partner);
                        apart(place, forward, partner);
                    }
                    case Op.UnitOp _, Op.ParameterOp _, Op.ReduceGradients _ -> judge(place, op);
                }
            }
        }
        return violations;
    }

    /** A pair whose halves need each other's tensors is stuck; what they share besides is here. */
    private void apart(OpPlace place, Op.Forward forward, Op.Compute partner) {
        WorkUnit one = forward.unit();
        WorkUnit other = partner.unit();
        if (one.equals(other)) {
            overlaps(place, "a backward with the forward that it needs");
        } else if (partner instanceof Op.Forward
                && one.stage() == other.stage()
                && one.microBatch() == other.microBatch()) {
            overlaps(place, "two slices of a sequence, of which one needs the other");
        }
    }

    private void overlaps(OpPlace place, String what) {
        violations.add(
                new Violation.OutOfOrder(
                        place,
                        place,
                        "rank %d, op %d: %s overlaps %s"
                                .formatted(
                                        place.rank(),
                                        place.position(),
                                        OpText.print(place.op(), shape),
                                        what)));
    }

    /**
     * @param op the op at the place, or one half of the pair there
     */
    private void judge(OpPlace place, Op op) {
        if (index.exists(op) && index.belongsOn(place.rank(), op)) {
            check(place, op);
        }
    }

    private void check(OpPlace place, Op op) {
        switch (op) {
            case Op.Forward(WorkUnit u) -> {
                int unit = shape.indexOf(u);
                after(place, OpKind.RECEIVE_ACTIVATION, unit);
                if (u.stage() > 0 && !placement.crossesBefore(u)) {
                    after(place, OpKind.FORWARD, unit - shape.unitsPerStage());
                }
                if (u.slice() > 0) {
                    afterSlice(place, OpKind.FORWARD, unit - 1, "slices rise");
                }
            }
            case Op.InputGradient backward -> {
                WorkUnit u = backward.unit();
                int unit = shape.indexOf(u);
                after(place, OpKind.FORWARD, unit);
                after(place, OpKind.RECOMPUTE, unit);
                after(place, OpKind.RELOAD, unit);
                after(place, OpKind.RECEIVE_GRADIENT, unit);
                if (u.stage() < shape.stages() - 1 && !placement.crossesAfter(u)) {
                    after(place, OpKind.BACKWARD, unit + shape.unitsPerStage());
                    after(place, OpKind.BACKWARD_INPUT, unit + shape.unitsPerStage());
                }
                if (u.slice() < shape.slices() - 1) {
                    afterSlice(place, OpKind.BACKWARD, unit + 1, "slices fall");
                    afterSlice(place, OpKind.BACKWARD_INPUT, unit + 1, "slices fall");
                }
            }
            case Op.BackwardWeight(WorkUnit u) ->
                    after(place, OpKind.BACKWARD_INPUT, shape.indexOf(u));
            case Op.Recompute(WorkUnit u) -> after(place, OpKind.FORWARD, shape.indexOf(u));
            case Op.Offload(WorkUnit u) -> after(place, OpKind.FORWARD, shape.indexOf(u));
            case Op.Reload(WorkUnit u) -> after(place, OpKind.OFFLOAD, shape.indexOf(u));
            case Op.SendActivation(WorkUnit u) -> after(place, OpKind.FORWARD, shape.indexOf(u));
            case Op.SendGradient(WorkUnit u) -> {
                after(place, OpKind.BACKWARD, shape.indexOf(u));
                after(place, OpKind.BACKWARD_INPUT, shape.indexOf(u));
            }
            case Op.ReduceGradients(int stage) -> afterLastBackward(place, stage);
            case Op.ReceiveActivation _,
                    Op.ReceiveGradient _,
                    Op.Overlapped _,
                    Op.ParameterOp _ -> {}
        }
    }

    private void after(OpPlace place, OpKind kind, int unit) {
        int needed = index.positionOf(kind, unit);
        if (needed > place.position()) {
            var at = new OpPlace(place.rank(), needed, kind.on(shape.unitAt(unit)));
            violations.add(
                    new Violation.OutOfOrder(place, at, before(place, at) + ", which it needs"));
        }
    }

    private void afterSlice(OpPlace place, OpKind kind, int unit, String rule) {
        int needed = index.positionOf(kind, unit);
        if (needed > place.position()) {
            var at = new OpPlace(place.rank(), needed, kind.on(shape.unitAt(unit)));
            String way = kind == OpKind.FORWARD ? "forwards" : "backwards";
            violations.add(
                    new Violation.SliceOrder(
                            place, at, before(place, at) + "; " + rule + " in the " + way));
        }
    }

    private void afterLastBackward(OpPlace place, int stage) {
        int last = index.lastBackwardOf(stage, place.rank());
        boolean isLast = index.lastReductionOf(stage, place.rank()) == place.position();
        if (isLast && last > place.position()) {
            var at =
                    new OpPlace(place.rank(), last, schedule.program(place.rank()).ops().get(last));
            violations.add(
                    new Violation.OutOfOrder(
                            place, at, before(place, at) + ", whose gradients it sums"));
        }
    }

    private String before(OpPlace place, OpPlace needed) {
        return "rank %d, op %d: %s comes before %s (op %d)"
                .formatted(
                        place.rank(),
                        place.position(),
                        OpText.print(place.op(), shape),
                        OpText.print(needed.op(), shape),
                        needed.position());
    }
}
