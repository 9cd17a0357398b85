package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** One run of a schedule; see {@link ScheduleSimulator} for what holds. Linear in ops. */
final class Execution {
    private static final long NOT_YET = -1;

    private final Schedule schedule;
    private final PipelineShape shape;
    private final CostModel costs;
    private final Handover handover;

    private final int[] position;
    private final long[] clock;
    private final long[][] starts;
    private final long[][] ends;

    /** By tensor: when it can be received. */
    private final long[] arrival;

    /** By tensor: 1 + the rank that waits for it; 0 for none. */
    private final int[] waiter;

    /** By channel. */
    private final @Nullable Credits[] credits;

    private final long[] latency;

    /** By stage; null where it shares nothing. */
    private final @Nullable Collective[] collectives;

    private final ArrayDeque<Integer> movable = new ArrayDeque<>();

    Execution(Schedule schedule, CostModel costs, InFlight inFlight) {
        this.schedule = schedule;
        this.shape = schedule.shape();
        this.costs = costs;
        this.handover = new Handover(schedule);
        int ranks = shape.ranks();
        this.position = new int[ranks];
        this.clock = new long[ranks];
        this.starts = new long[ranks][];
        this.ends = new long[ranks][];
        for (RankProgram program : schedule.programs()) {
            starts[program.rank()] = new long[program.ops().size()];
            ends[program.rank()] = new long[program.ops().size()];
        }
        this.arrival = new long[handover.tensors()];
        Arrays.fill(arrival, NOT_YET);
        this.waiter = new int[handover.tensors()];
        this.credits = new @Nullable Credits[handover.channels()];
        this.latency = new long[handover.channels()];
        openChannels(inFlight);
        this.collectives = new @Nullable Collective[shape.stages()];
        formCollectives();
    }

    private void openChannels(InFlight inFlight) {
        for (int i = 0; i < credits.length; i++) {
            Optional<Channel> channel = handover.channelAt(i);
            if (channel.isPresent()) {
                int capacity = inFlight.capacity(channel.get());
                credits[i] = new Credits(capacity, shape.unitsPerStage());
                latency[i] = costs.latencyNanos(channel.get());
            }
        }
    }

    private void formCollectives() {
        for (List<Integer> stages : schedule.sharedGroups()) {
            List<Integer> ranks =
                    stages.stream().map(schedule.placement()::rankOf).distinct().toList();
            var collective = new Collective(stages, ranks);
            stages.forEach(stage -> collectives[stage] = collective);
        }
    }

    Simulation run() {
        boolean moved;
        do {
            // a second look at all, since nobody wakes an op on a rank where it does not belong
            for (int rank = 0; rank < shape.ranks(); rank++) {
                movable.add(rank);
            }
            moved = false;
            while (!movable.isEmpty()) {
                moved |= advance(movable.remove());
            }
        } while (moved);
        for (int rank = 0; rank < shape.ranks(); rank++) {
            starts[rank] = Arrays.copyOf(starts[rank], position[rank]);
            ends[rank] = Arrays.copyOf(ends[rank], position[rank]);
        }
        var stuck = new StuckRanks(schedule, handover, position, collectives).waits();
        return new Simulation(new Timeline(schedule, starts, ends), stuck);
    }

    /** Lets a rank run until it waits or ends. */
    private boolean advance(int rank) {
        List<Op> ops = schedule.program(rank).ops();
        int before = position[rank];
        while (position[rank] < ops.size() && execute(rank, ops.get(position[rank]))) {
            position[rank]++;
        }
        return position[rank] > before;
    }

    private boolean execute(int rank, Op op) {
        if (op instanceof Op.UnitOp unitOp && !shape.contains(unitOp.unit())) {
            starts[rank][position[rank]] = clock[rank];
            ends[rank][position[rank]] = clock[rank];
            return true;
        }
        long ready = readyAt(rank, op);
        if (ready == NOT_YET) {
            return false;
        }
        long start = Math.max(clock[rank], ready);
        long end = start + costs.nanos(rank, position[rank], op);
        starts[rank][position[rank]] = start;
        ends[rank][position[rank]] = end;
        clock[rank] = end;
        passOn(op, end);
        return true;
    }

    /** When nothing but the rank itself keeps an op from starting. */
    private long readyAt(int rank, Op op) {
        int tensor = handover.needs(op);
        if (tensor != Handover.NONE) {
            waiter[tensor] = rank + 1;
            return arrival[tensor];
        }
        if (op instanceof Op.ReduceGradients(int stage)) {
            return arrive(rank, stage);
        }
        @Nullable Credits channel = channelOf(op);
        return Handover.isSend(op) && channel != null ? channel.nextAt() : 0;
    }

    private long arrive(int rank, int stage) {
        @Nullable Collective collective = stage < shape.stages() ? collectives[stage] : null;
        if (collective == null) {
            return 0;
        }
        boolean newcomer = collective.misses(rank);
        long complete = collective.arrive(rank, clock[rank]);
        if (newcomer && complete != Collective.NOT_YET) {
            collective.stages().forEach(s -> movable.add(schedule.placement().rankOf(s)));
        }
        return complete;
    }

    /** Tells others what an op's end means to them. */
    private void passOn(Op op, long end) {
        int tensor = handover.gives(op);
        if (tensor != Handover.NONE && arrival[tensor] == NOT_YET) {
            arrival[tensor] = end + latency[handover.channelOfTensor(tensor)];
            if (waiter[tensor] > 0) {
                movable.add(waiter[tensor] - 1);
            }
        }
        @Nullable Credits channel = channelOf(op);
        if (channel != null && Handover.isSend(op)) {
            channel.send();
        } else if (channel != null) {
            channel.receive(end);
            movable.add(schedule.placement().rankOf(handover.giverTo(op).stage()));
        }
    }

    private @Nullable Credits channelOf(Op op) {
        int channel = handover.channel(op);
        return channel == Handover.NONE ? null : credits[channel];
    }
}
