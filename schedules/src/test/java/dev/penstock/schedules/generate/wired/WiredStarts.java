package dev.penstock.schedules.generate.wired;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;

/**
 * When the computations of a wired order end, from the definition alone: all ops are gone through
 * until nothing changes. Whoever has an op's unit before it, after it or beside it, on whatever
 * rank, is looked up by op; the wiring is not looked at.
 */
final class WiredStarts {
    private final Schedule schedule;
    private final List<OpCosts> costs;
    private final Map<Op, Long> ends = new HashMap<>();
    private final Map<Op, Integer> ranks = new HashMap<>();

    WiredStarts(Schedule schedule, List<OpCosts> costs) {
        this.schedule = schedule;
        this.costs = costs;
        schedule.programs()
                .forEach(program -> program.ops().forEach(op -> ranks.put(op, program.rank())));
        int known;
        do {
            known = ends.size();
            schedule.programs().forEach(program -> pass(program.rank(), program.ops()));
        } while (ends.size() > known);
    }

    private void pass(int rank, List<Op> ops) {
        long before = 0;
        for (Op op : ops) {
            if (!ends.containsKey(op)) {
                OptionalLong ready = ready(rank, ((Op.UnitOp) op).unit(), op);
                if (ready.isEmpty()) {
                    return;
                }
                ends.put(op, Math.max(before, ready.getAsLong()) + nanos(rank, op));
            }
            before = Objects.requireNonNull(ends.get(op));
        }
    }

    private OptionalLong ready(int rank, WorkUnit unit, Op op) {
        return switch (op) {
            case Op.Forward _ ->
                    unit.stage() == 0
                            ? OptionalLong.of(0)
                            : arrival(rank, new Op.Forward(unit.onStage(unit.stage() - 1)));
            case Op.InputGradient _ -> {
                if (!ends.containsKey(new Op.Forward(unit))) {
                    yield OptionalLong.empty();
                }
                if (unit.stage() == schedule.shape().stages() - 1) {
                    yield OptionalLong.of(0);
                }
                WorkUnit next = unit.onStage(unit.stage() + 1);
                OptionalLong whole = arrival(rank, new Op.Backward(next));
                yield whole.isPresent() ? whole : arrival(rank, new Op.BackwardInput(next));
            }
            case Op _ -> OptionalLong.of(0);
        };
    }

    private OptionalLong arrival(int rank, Op giver) {
        Integer from = ranks.get(giver);
        Long end = ends.get(giver);
        if (from == null || end == null) {
            return OptionalLong.empty();
        }
        return OptionalLong.of(end + (from == rank ? 0 : costs.get(from).communicationNanos()));
    }

    private long nanos(int rank, Op op) {
        OpCosts of = costs.get(rank);
        return switch (op) {
            case Op.Forward _ -> of.forwardNanos();
            case Op.Backward _ -> of.backwardInputNanos() + of.backwardWeightNanos();
            case Op.BackwardInput _ -> of.backwardInputNanos();
            case Op.BackwardWeight _ -> of.backwardWeightNanos();
            case Op _ -> throw new IllegalArgumentException(op + " is no computation");
        };
    }

    /** Of the whole; empty if somebody waits for ever. */
    OptionalLong makespan() {
        boolean all =
                schedule.programs().stream()
                        .flatMap(program -> program.ops().stream())
                        .allMatch(ends::containsKey);
        return all ? ends.values().stream().mapToLong(end -> end).max() : OptionalLong.empty();
    }
}
