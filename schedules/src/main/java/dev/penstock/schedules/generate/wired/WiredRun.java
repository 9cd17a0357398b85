package dev.penstock.schedules.generate.wired;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.OpKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.ProgramWriter;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.PriorityQueue;

/** Runs a wiring in thought and writes down what every rank does; see {@link WiredOrder}. */
final class WiredRun {
    /**
     * Something that could run.
     *
     * @param turn the least is taken
     * @param order among those of the same turn
     */
    private record Ready(long turn, int order, WorkUnit unit) implements Comparable<Ready> {
        @Override
        public int compareTo(Ready other) {
            int byTurn = Long.compare(turn, other.turn);
            return byTurn != 0 ? byTurn : Integer.compare(order, other.order);
        }
    }

    /** Something that happens: what a rank computes ends, or a tensor comes to one. */
    private record Event(long nanos, int number, int rank, boolean ends, OpKind kind, WorkUnit unit)
            implements Comparable<Event> {
        @Override
        public int compareTo(Event other) {
            int byTime = Long.compare(nanos, other.nanos);
            return byTime != 0 ? byTime : Integer.compare(number, other.number);
        }
    }

    /** What a rank has before it. */
    private static final class Desk {
        final PriorityQueue<Ready> backwards = new PriorityQueue<>();

        /** Forwards of micro-batches that the rank holds already. */
        final PriorityQueue<Ready> begun = new PriorityQueue<>();

        /** Forwards with which a micro-batch begins. */
        final PriorityQueue<Ready> fresh = new PriorityQueue<>();

        final PriorityQueue<Ready> weights = new PriorityQueue<>();
        final ProgramWriter program;
        boolean busy;
        int held;

        Desk(int rank, int ops) {
            program = new ProgramWriter(rank, ops);
        }
    }

    private final PipelineShape shape;
    private final Placement placement;
    private final boolean split;
    private final List<OpCosts> costs;
    private final List<Integer> caps;
    private final List<Desk> desks = new ArrayList<>();
    private final PriorityQueue<Event> events = new PriorityQueue<>();
    private final BitSet lookAt = new BitSet();

    /** By unit: what a forward, and what a backward, still waits for. */
    private final int[] forwardWaits;

    private final int[] backwardWaits;

    /** By stage and micro-batch: slices whose last op has not ended. */
    private final int[] open;

    private final Turns turns;

    private int numbers;
    private long now;

    WiredRun(
            PipelineShape shape,
            Placement placement,
            boolean split,
            List<OpCosts> costs,
            List<Integer> caps) {
        this.shape = shape;
        this.placement = placement;
        this.split = split;
        this.costs = costs;
        this.caps = caps;
        this.turns = new Turns(shape, placement);
        this.forwardWaits = new int[shape.units()];
        this.backwardWaits = new int[shape.units()];
        this.open = new int[shape.stages() * shape.microBatches()];
        for (int rank = 0; rank < shape.ranks(); rank++) {
            desks.add(new Desk(rank, 3 * shape.unitsPerStage() / shape.peers()));
        }
    }

    List<RankProgram> programs() {
        for (int i = 0; i < shape.units(); i++) {
            WorkUnit unit = shape.unitAt(i);
            forwardWaits[i] = (unit.stage() > 0 ? 1 : 0) + (unit.slice() > 0 ? 1 : 0);
            backwardWaits[i] =
                    1
                            + (unit.stage() < shape.stages() - 1 ? 1 : 0)
                            + (unit.slice() < shape.slices() - 1 ? 1 : 0);
            open[i / shape.slices()] = shape.slices();
            if (forwardWaits[i] == 0) {
                forwardCanRun(unit);
            }
        }
        startAll();
        while (!events.isEmpty()) {
            now = events.element().nanos;
            while (!events.isEmpty() && events.element().nanos == now) {
                happens(events.remove());
            }
            startAll();
        }
        return desks.stream().map(desk -> desk.program.program()).toList();
    }

    private void startAll() {
        for (int rank = lookAt.nextSetBit(0); rank >= 0; rank = lookAt.nextSetBit(rank + 1)) {
            start(rank, desks.get(rank));
        }
        lookAt.clear();
    }

    private void start(int rank, Desk desk) {
        if (desk.busy) {
            return;
        }
        if (!desk.backwards.isEmpty()) {
            run(rank, split ? OpKind.BACKWARD_INPUT : OpKind.BACKWARD, desk.backwards.remove());
        } else if (!desk.begun.isEmpty()) {
            run(rank, OpKind.FORWARD, desk.begun.remove());
        } else if (!desk.fresh.isEmpty() && desk.held < caps.get(rank)) {
            desk.held++;
            run(rank, OpKind.FORWARD, desk.fresh.remove());
        } else if (!desk.weights.isEmpty()) {
            run(rank, OpKind.BACKWARD_WEIGHT, desk.weights.remove());
        }
    }

    private void run(int rank, OpKind kind, Ready ready) {
        Desk desk = desks.get(rank);
        desk.busy = true;
        desk.program.add(kind.on(ready.unit));
        add(now + nanos(rank, kind), rank, true, kind, ready.unit);
    }

    private void add(long nanos, int rank, boolean ends, OpKind kind, WorkUnit unit) {
        events.add(new Event(nanos, numbers++, rank, ends, kind, unit));
    }

    private long nanos(int rank, OpKind kind) {
        OpCosts of = costs.get(rank);
        return switch (kind) {
            case FORWARD -> of.forwardNanos();
            case BACKWARD -> of.backwardInputNanos() + of.backwardWeightNanos();
            case BACKWARD_INPUT -> of.backwardInputNanos();
            case BACKWARD_WEIGHT -> of.backwardWeightNanos();
            case RECOMPUTE,
                    SEND_ACTIVATION,
                    RECEIVE_ACTIVATION,
                    SEND_GRADIENT,
                    RECEIVE_GRADIENT,
                    OFFLOAD,
                    RELOAD ->
                    0;
        };
    }

    private void happens(Event event) {
        WorkUnit unit = event.unit;
        if (!event.ends) {
            comes(event.kind, unit);
            return;
        }
        desks.get(event.rank).busy = false;
        lookAt.set(event.rank);
        switch (event.kind) {
            case FORWARD -> {
                comesToBackward(unit);
                if (unit.slice() < shape.slices() - 1) {
                    comesToForward(onSlice(unit, unit.slice() + 1));
                }
                pass(event, unit.stage() + 1);
            }
            case BACKWARD, BACKWARD_INPUT -> {
                if (unit.slice() > 0) {
                    comesToBackward(onSlice(unit, unit.slice() - 1));
                }
                if (event.kind == OpKind.BACKWARD) {
                    close(event);
                } else {
                    desks.get(event.rank).weights.add(new Ready(now, shape.indexOf(unit), unit));
                }
                pass(event, unit.stage() - 1);
            }
            case BACKWARD_WEIGHT -> close(event);
            case RECOMPUTE,
                    SEND_ACTIVATION,
                    RECEIVE_ACTIVATION,
                    SEND_GRADIENT,
                    RECEIVE_GRADIENT,
                    OFFLOAD,
                    RELOAD -> {}
        }
    }

    /** Gives what an op made to the next stage. */
    private void pass(Event event, int stage) {
        if (stage < 0 || stage == shape.stages()) {
            return;
        }
        WorkUnit to = event.unit.onStage(stage);
        int receiver = placement.rankOf(to);
        long way = receiver == event.rank ? 0 : costs.get(event.rank).communicationNanos();
        if (way == 0) {
            comes(event.kind, to);
        } else {
            add(now + way, receiver, false, event.kind, to);
        }
    }

    private void comes(OpKind made, WorkUnit to) {
        if (made == OpKind.FORWARD) {
            comesToForward(to);
        } else {
            comesToBackward(to);
        }
    }

    private void comesToForward(WorkUnit unit) {
        if (--forwardWaits[shape.indexOf(unit)] == 0) {
            forwardCanRun(unit);
        }
    }

    private void forwardCanRun(WorkUnit unit) {
        int rank = placement.rankOf(unit);
        Desk desk = desks.get(rank);
        if (unit.slice() == 0) {
            long turn = turns.of(unit.stage(), unit.microBatch());
            desk.fresh.add(new Ready(turn, shape.indexOf(unit), unit));
        } else {
            // the rank began with the first slice
            desk.begun.add(new Ready(now, shape.indexOf(unit), unit));
        }
        lookAt.set(rank);
    }

    private void comesToBackward(WorkUnit unit) {
        if (--backwardWaits[shape.indexOf(unit)] == 0) {
            int rank = placement.rankOf(unit);
            desks.get(rank).backwards.add(new Ready(now, shape.indexOf(unit), unit));
            lookAt.set(rank);
        }
    }

    private void close(Event event) {
        int microBatch = shape.indexOf(event.unit) / shape.slices();
        if (--open[microBatch] == 0) {
            desks.get(event.rank).held--;
        }
    }

    private static WorkUnit onSlice(WorkUnit unit, int slice) {
        return new WorkUnit(unit.stage(), unit.microBatch(), slice);
    }
}
