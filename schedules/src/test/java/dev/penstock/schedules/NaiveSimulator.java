package dev.penstock.schedules;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;

/**
 * The runtime's semantics a second time, slowly: it visits every rank repeatedly and searches whole
 * programs for whatever an op waits for.
 */
public final class NaiveSimulator {
    private final Schedule schedule;
    private final CostModel costs;
    private final InFlight inFlight;
    private final boolean implied;
    private final List<List<Long>> starts = new ArrayList<>();
    private final List<List<Long>> ends = new ArrayList<>();

    /** When the rank could continue: before what it does beside its computations has ended. */
    private final List<List<Long>> free = new ArrayList<>();

    public NaiveSimulator(Schedule schedule, CostModel costs, InFlight inFlight) {
        this.schedule = schedule;
        this.costs = costs;
        this.inFlight = inFlight;
        this.implied = !schedule.hasTransfers();
        schedule.programs().forEach(_ -> starts.add(new ArrayList<>()));
        schedule.programs().forEach(_ -> ends.add(new ArrayList<>()));
        schedule.programs().forEach(_ -> free.add(new ArrayList<>()));
        boolean moved = true;
        while (moved) {
            moved = false;
            for (int rank = 0; rank < starts.size(); rank++) {
                moved |= tryNext(rank);
            }
        }
    }

    /** Entry r holds the starts of the ops of rank r that ran. */
    public List<List<Long>> starts() {
        return starts;
    }

    public List<List<Long>> ends() {
        return ends;
    }

    public boolean finished() {
        return schedule.programs().stream()
                .allMatch(p -> starts.get(p.rank()).size() == p.ops().size());
    }

    private boolean tryNext(int rank) {
        int position = starts.get(rank).size();
        List<Op> ops = schedule.program(rank).ops();
        if (position == ops.size()) {
            return false;
        }
        Op op = ops.get(position);
        OptionalLong ready = readyAt(rank, op);
        if (ready.isEmpty()) {
            return false;
        }
        long start = Math.max(clock(rank), ready.getAsLong());
        start = Math.max(start, activationsAt(rank, op));
        long end = start + costs.nanos(rank, position, op);
        free.get(rank).add(end);
        if (isBackground(op)) {
            start = Math.max(start, lastBackgroundEnd(rank));
            end = Math.max(end, start + costs.backgroundNanos(rank, op));
        } else if (op instanceof Op.ActivationOp) {
            start = Math.max(start, lastMoveEnd(rank));
            end = start + costs.backgroundNanos(rank, op);
        }
        starts.get(rank).add(start);
        ends.get(rank).add(end);
        return true;
    }

    private long clock(int rank) {
        return free.get(rank).isEmpty() ? 0 : free.get(rank).getLast();
    }

    private static boolean isBackground(Op op) {
        return op instanceof Op.GatherParameters || op instanceof Op.ReduceGradients;
    }

    private long lastMoveEnd(int rank) {
        long last = 0;
        for (int i = 0; i < ends.get(rank).size(); i++) {
            if (schedule.program(rank).ops().get(i) instanceof Op.ActivationOp) {
                last = ends.get(rank).get(i);
            }
        }
        return last;
    }

    /** When a unit's activations are back, and the room that it takes is empty. */
    private long activationsAt(int rank, Op op) {
        long at = 0;
        for (Op.Compute part : op.computations()) {
            if (part instanceof Op.InputGradient) {
                int reload = schedule.program(rank).ops().indexOf(new Op.Reload(part.unit()));
                at = Math.max(at, reload < 0 ? 0 : ends.get(rank).get(reload));
            }
            if (takes(part)) {
                at = Math.max(at, roomAt(rank, part.stage()));
            }
        }
        return at;
    }

    /** Slots are counted; those that activations leave are taken last, in the order of leaving. */
    private long roomAt(int rank, int stage) {
        List<Op> ops = schedule.program(rank).ops();
        boolean moves =
                ops.stream().anyMatch(op -> op instanceof Op.Offload o && o.stage() == stage);
        if (!moves) {
            return 0;
        }
        int idle = slots(ops, stage);
        var leaving = new ArrayList<Long>();
        for (int i = 0; i < starts.get(rank).size(); i++) {
            for (Op op : ofStage(ops.get(i), stage)) {
                if (takes(op) && idle > 0) {
                    idle--;
                } else if (takes(op)) {
                    leaving.removeFirst();
                }
                if (op instanceof Op.Offload) {
                    leaving.add(ends.get(rank).get(i));
                } else if (isLast(ops, op)) {
                    idle++;
                }
            }
        }
        return idle > 0 ? 0 : leaving.getFirst();
    }

    private static int slots(List<Op> ops, int stage) {
        int live = 0;
        int most = 0;
        for (Op each : ops) {
            live += (int) ofStage(each, stage).stream().filter(NaiveSimulator::takes).count();
            most = Math.max(most, live);
            for (Op op : ofStage(each, stage)) {
                live -= op instanceof Op.Offload || isLast(ops, op) ? 1 : 0;
            }
        }
        return most;
    }

    private static List<? extends Op> ofStage(Op op, int stage) {
        List<? extends Op> parts = op instanceof Op.Overlapped ? op.computations() : List.of(op);
        return parts.stream().filter(part -> part.stage() == stage).toList();
    }

    private static boolean takes(Op op) {
        return op instanceof Op.Forward || op instanceof Op.Reload || op instanceof Op.Recompute;
    }

    private static boolean isLast(List<Op> ops, Op op) {
        return op instanceof Op.Backward
                || (op instanceof Op.Forward(WorkUnit f) && ops.contains(new Op.Recompute(f)))
                || op instanceof Op.BackwardWeight
                || (op instanceof Op.BackwardInput(WorkUnit unit)
                        && !ops.contains(new Op.BackwardWeight(unit)));
    }

    private long lastBackgroundEnd(int rank) {
        long last = 0;
        for (int i = 0; i < ends.get(rank).size(); i++) {
            if (isBackground(schedule.program(rank).ops().get(i))) {
                last = ends.get(rank).get(i);
            }
        }
        return last;
    }

    /** When the last gather of the stage that came before is done. */
    private long parametersAt(int rank, int stage) {
        long at = 0;
        for (int i = 0; i < ends.get(rank).size(); i++) {
            if (schedule.program(rank).ops().get(i) instanceof Op.GatherParameters(int s, _)
                    && s == stage) {
                at = ends.get(rank).get(i);
            }
        }
        return at;
    }

    private OptionalLong readyAt(int rank, Op op) {
        OptionalLong tensorAt = tensorAt(rank, op);
        return op instanceof Op.Compute && tensorAt.isPresent()
                ? OptionalLong.of(Math.max(tensorAt.getAsLong(), parametersAt(rank, op.stage())))
                : tensorAt;
    }

    private OptionalLong tensorAt(int rank, Op op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) when implied && crosses(u.stage() - 1, u.stage()) ->
                    arrival(new Op.Forward(u.onStage(u.stage() - 1)), u.stage() - 1, u.stage());
            case Op.InputGradient backward when implied && crosses(op.stage() + 1, op.stage()) -> {
                WorkUnit u = backward.unit().onStage(op.stage() + 1);
                OptionalLong whole = arrival(new Op.Backward(u), u.stage(), op.stage());
                yield whole.isPresent()
                        ? whole
                        : arrival(new Op.BackwardInput(u), u.stage(), op.stage());
            }
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) -> {
                OptionalLong first = readyAt(rank, forward);
                OptionalLong second = readyAt(rank, partner);
                yield first.isEmpty() || second.isEmpty()
                        ? OptionalLong.empty()
                        : OptionalLong.of(Math.max(first.getAsLong(), second.getAsLong()));
            }
            case Op.Compute _, Op.ActivationOp _, Op.ParameterOp _ -> OptionalLong.of(0);
            case Op.ReceiveActivation(WorkUnit u) when u.stage() == 0 -> OptionalLong.empty();
            case Op.ReceiveActivation(WorkUnit u) ->
                    arrival(
                            new Op.SendActivation(u.onStage(u.stage() - 1)),
                            u.stage() - 1,
                            u.stage());
            case Op.ReceiveGradient(WorkUnit u) ->
                    arrival(
                            new Op.SendGradient(u.onStage(u.stage() + 1)),
                            u.stage() + 1,
                            u.stage());
            case Op.SendActivation(WorkUnit u) -> credit(rank, u.stage(), u.stage() + 1);
            case Op.SendGradient(WorkUnit u) -> credit(rank, u.stage(), u.stage() - 1);
            case Op.ReduceGradients(int stage) ->
                    isLast(rank) ? allMembersAt(stage) : OptionalLong.of(0);
        };
    }

    private boolean crosses(int stage, int other) {
        int last = schedule.shape().stages() - 1;
        return stage >= 0
                && stage <= last
                && schedule.placement().rankOf(stage) != schedule.placement().rankOf(other);
    }

    private OptionalLong arrival(Op giver, int from, int to) {
        for (int rank = 0; rank < starts.size(); rank++) {
            List<Op> ops = schedule.program(rank).ops();
            int at = 0;
            while (at < ops.size()
                    && !ops.get(at).equals(giver)
                    && !ops.get(at).computations().contains(giver)) {
                at++;
            }
            if (at < ends.get(rank).size()) {
                long latency = costs.latencyNanos(new Channel(from, to));
                int receiver = schedule.placement().rankOf(to);
                return OptionalLong.of(leavesLink(rank, receiver, at, giver) + latency);
            }
        }
        return OptionalLong.empty();
    }

    /** One tensor after another, in the order of the sender's program. */
    private long leavesLink(int sender, int receiver, int position, Op giver) {
        long left = 0;
        for (int i = 0; i <= position; i++) {
            Op op = schedule.program(sender).ops().get(i);
            for (Op part : op instanceof Op.Overlapped ? op.computations() : List.of(op)) {
                int to = givesTo(part);
                if (to >= 0 && schedule.placement().rankOf(to) == receiver) {
                    WorkUnit unit = ((Op.UnitOp) part).unit().onStage(to);
                    left =
                            Math.max(left, free.get(sender).get(i))
                                    + costs.occupancyNanos(new Channel(part.stage(), to), unit);
                    if (i == position && part.equals(giver)) {
                        return left;
                    }
                }
            }
        }
        throw new IllegalStateException(giver + " gives nothing to rank " + receiver);
    }

    /** The stage that an op passes a tensor on to; -1 if it passes on none. */
    private int givesTo(Op op) {
        int stage = op.stage();
        int to =
                switch (op) {
                    case Op.Forward _ -> implied && crosses(stage + 1, stage) ? stage + 1 : -1;
                    case Op.InputGradient _ ->
                            implied && crosses(stage - 1, stage) ? stage - 1 : -1;
                    case Op.SendActivation _ -> stage + 1;
                    case Op.SendGradient _ -> stage - 1;
                    case Op.BackwardWeight _,
                            Op.Recompute _,
                            Op.Overlapped _,
                            Op.ReceiveActivation _,
                            Op.ReceiveGradient _,
                            Op.ActivationOp _,
                            Op.ParameterOp _,
                            Op.ReduceGradients _ ->
                            -1;
                };
        return to < schedule.shape().stages() ? to : -1;
    }

    /** The k-th send needs the receive that is as many before it as the channel holds. */
    private OptionalLong credit(int rank, int from, int to) {
        if (to < 0 || to >= schedule.shape().stages()) {
            return OptionalLong.of(0);
        }
        int position = starts.get(rank).size();
        long sent =
                schedule.program(rank).ops().subList(0, position).stream()
                        .filter(op -> isSend(op, from, to))
                        .count();
        long awaited = sent - inFlight.capacity(new Channel(from, to));
        if (awaited < 0) {
            return OptionalLong.of(0);
        }
        int receiver = schedule.placement().rankOf(to);
        for (int i = 0; i < ends.get(receiver).size(); i++) {
            if (isReceive(schedule.program(receiver).ops().get(i), from, to) && awaited-- == 0) {
                return OptionalLong.of(ends.get(receiver).get(i));
            }
        }
        return OptionalLong.empty();
    }

    private static boolean isSend(Op op, int from, int to) {
        return op.stage() == from
                && (from < to ? op instanceof Op.SendActivation : op instanceof Op.SendGradient);
    }

    private static boolean isReceive(Op op, int from, int to) {
        return op.stage() == to
                && (from < to
                        ? op instanceof Op.ReceiveActivation
                        : op instanceof Op.ReceiveGradient);
    }

    /** Whether the op that a rank comes to does not come again. */
    private boolean isLast(int rank) {
        return isLast(schedule.program(rank).ops(), starts.get(rank).size());
    }

    private static boolean isLast(List<Op> ops, int position) {
        return !ops.subList(position + 1, ops.size()).contains(ops.get(position));
    }

    private OptionalLong allMembersAt(int stage) {
        long latest = 0;
        for (List<Integer> group : schedule.sharedGroups()) {
            if (group.contains(stage)) {
                for (int member : group) {
                    int rank = schedule.placement().rankOf(member);
                    List<Op> ops = schedule.program(rank).ops();
                    int first = 0;
                    while (first < ops.size()
                            && !(ops.get(first) instanceof Op.ReduceGradients(int s)
                                    && group.contains(s)
                                    && isLast(ops, first))) {
                        first++;
                    }
                    if (ends.get(rank).size() < first) {
                        return OptionalLong.empty();
                    }
                    latest = Math.max(latest, first == 0 ? 0 : free.get(rank).get(first - 1));
                }
            }
        }
        return OptionalLong.of(latest);
    }

    @Override
    public String toString() {
        return Arrays.toString(starts.toArray());
    }
}
