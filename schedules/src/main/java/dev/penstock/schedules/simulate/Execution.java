package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
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
    private final OpTimes times;

    /** By tensor: when it can be received. */
    private final long[] arrival;

    /** By tensor: 1 + the rank that waits for it; 0 for none. */
    private final int[] waiter;

    /** By channel. */
    private final @Nullable Credits[] credits;

    private final @Nullable Channel[] channels;
    private final long[] latency;

    /** By channel: the number of its link, which all channels between the same two ranks share. */
    private final int[] linkOf;

    /** By link: when the last tensor that was given to it has left. */
    private final long[] linkFree;

    /** By rank: when its last gather or reduction beside the computations ends. */
    private final long[] background;

    private final @Nullable HostLinks host;

    /** By stage and peer: when the parameters that were gathered last are there. */
    private final long[] resident;

    /** By stage; null where it shares nothing. */
    private final @Nullable SharedReduction[] collectives;

    /** By stage that shares something and peer: where the rank meets the others. */
    private final int[] lastReductions;

    private final RankQueue movable;

    Execution(Schedule schedule, CostModel costs, InFlight inFlight, OpTimes times) {
        this.schedule = schedule;
        this.shape = schedule.shape();
        this.costs = costs;
        this.handover = new Handover(schedule);
        int ranks = shape.ranks();
        this.position = new int[ranks];
        this.clock = new long[ranks];
        this.times = times;
        this.movable = new RankQueue(ranks);
        this.arrival = new long[handover.tensors()];
        Arrays.fill(arrival, NOT_YET);
        this.waiter = new int[handover.tensors()];
        this.credits = new @Nullable Credits[handover.channels()];
        this.channels = new @Nullable Channel[handover.channels()];
        this.latency = new long[handover.channels()];
        this.linkOf = new int[handover.channels()];
        this.linkFree = new long[handover.channels()];
        this.background = new long[ranks];
        this.resident = new long[shape.stagesOfPeers()];
        this.host = HostLinks.of(schedule);
        openChannels(inFlight);
        this.collectives = new @Nullable SharedReduction[shape.stages()];
        this.lastReductions = new int[shape.stagesOfPeers()];
        formCollectives();
    }

    private void openChannels(InFlight inFlight) {
        Map<Long, Integer> links = new HashMap<>();
        for (int i = 0; i < credits.length; i++) {
            Optional<Channel> channel = handover.channelAt(i);
            if (channel.isPresent()) {
                channels[i] = channel.get();
                linkOf[i] = links.computeIfAbsent(ranksOf(channel.get()), _ -> links.size());
                int capacity = inFlight.capacity(channel.get());
                credits[i] = new Credits(capacity, shape.unitsPerStage());
                latency[i] = costs.latencyNanos(channel.get());
            }
        }
    }

    private long ranksOf(Channel channel) {
        long from = schedule.placement().senderOf(channel);
        return from * shape.ranks() + schedule.placement().receiverOf(channel);
    }

    private void formCollectives() {
        for (List<Integer> stages : schedule.reductionGroups()) {
            List<Integer> ranks =
                    stages.stream()
                            .flatMap(stage -> schedule.placement().ranksOf(stage).stream())
                            .distinct()
                            .toList();
            var collective = new SharedReduction(stages, ranks);
            for (int stage : stages) {
                collectives[stage] = collective;
                for (int rank : schedule.placement().ranksOf(stage)) {
                    lastReductions[shape.indexOf(stage, rank)] =
                            schedule.program(rank).lastReductionOf(stage);
                }
            }
        }
    }

    /** Runs as far as it goes and says who stands still then. */
    List<BlockedOp> run() {
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
        return new StuckRanks(schedule, handover, position, collectives, this::hasArrived).waits();
    }

    private boolean hasArrived(int tensor) {
        return arrival[tensor] != NOT_YET;
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
        if (!exists(op)) {
            times.ran(rank, position[rank], op, clock[rank], clock[rank], clock[rank]);
            return true;
        }
        long ready = readyAt(rank, op);
        if (ready == NOT_YET) {
            return false;
        }
        long start = Math.max(clock[rank], ready);
        if (host != null) {
            start = host.begin(rank, op, start);
        }
        long end = start + costs.nanos(rank, position[rank], op);
        clock[rank] = end;
        switch (op) {
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) -> {
                passOn(forward, end);
                passOn(partner, end);
            }
            case Op.GatherParameters _, Op.ReduceGradients _ -> {
                start = Math.max(start, background[rank]);
                end = Math.max(end, start + costs.backgroundNanos(rank, op));
                background[rank] = end;
                if (op instanceof Op.GatherParameters) {
                    resident[shape.indexOf(op.stage(), rank)] = end;
                }
            }
            case Op.ActivationOp moved -> {
                start = Objects.requireNonNull(host).copies(rank, start);
                end = start + costs.backgroundNanos(rank, op);
                host.moved(rank, moved, end);
            }
            case Op.Compute _, Op.Transfer _, Op.ReleaseParameters _ -> passOn(op, end);
        }
        if (host != null) {
            host.end(rank, op);
        }
        times.ran(rank, position[rank], op, start, end, clock[rank]);
        return true;
    }

    private boolean exists(Op op) {
        return switch (op) {
            case Op.UnitOp unitOp -> shape.contains(unitOp.unit());
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    shape.contains(forward.unit()) && shape.contains(partner.unit());
            case Op.ParameterOp _, Op.ReduceGradients _ -> op.stage() < shape.stages();
        };
    }

    /** When nothing but the rank itself keeps an op from starting. */
    private long readyAt(int rank, Op op) {
        if (op instanceof Op.Overlapped(Op.Forward forward, Op.Compute partner)) {
            long ofForward = readyAt(rank, forward);
            long ofPartner = readyAt(rank, partner);
            return ofForward == NOT_YET || ofPartner == NOT_YET
                    ? NOT_YET
                    : Math.max(ofForward, ofPartner);
        }
        int tensor = handover.needs(op);
        if (tensor != Handover.NONE) {
            waiter[tensor] = rank + 1;
            return arrival[tensor] == NOT_YET
                    ? NOT_YET
                    : Math.max(arrival[tensor], parametersAt(rank, op));
        }
        if (op instanceof Op.ReduceGradients(int stage)) {
            return arrive(rank, stage);
        }
        if (op.isSend()) {
            int channel = handover.channel(op);
            @Nullable Credits credit = channel == Handover.NONE ? null : credits[channel];
            return credit == null ? 0 : credit.nextAt();
        }
        return parametersAt(rank, op);
    }

    private long parametersAt(int rank, Op op) {
        return op instanceof Op.Compute ? resident[shape.indexOf(op.stage(), rank)] : 0;
    }

    /** Reductions before a stage's last one are its replicas' affair. */
    private long arrive(int rank, int stage) {
        @Nullable SharedReduction collective = stage < shape.stages() ? collectives[stage] : null;
        if (collective == null || position[rank] != lastReductions[shape.indexOf(stage, rank)]) {
            return 0;
        }
        boolean newcomer = collective.misses(rank);
        long complete = collective.arrive(rank, clock[rank]);
        if (newcomer && complete != SharedReduction.NOT_YET) {
            collective.ranks().forEach(movable::add);
        }
        return complete;
    }

    /** Tells others what an op's end means to them. */
    private void passOn(Op op, long end) {
        int tensor = handover.gives(op);
        if (tensor != Handover.NONE && arrival[tensor] == NOT_YET) {
            arrival[tensor] = underWay(tensor, end);
            if (waiter[tensor] > 0) {
                movable.add(waiter[tensor] - 1);
            }
        }
        int channel = handover.channel(op);
        @Nullable Credits credit = channel == Handover.NONE ? null : credits[channel];
        if (credit != null && op.isSend()) {
            credit.send();
        } else if (credit != null && credit.receive(end)) {
            movable.add(schedule.placement().senderOf(channel(channel)));
        }
    }

    private Channel channel(int number) {
        return Objects.requireNonNull(channels[number]);
    }

    /** When a tensor that is given to its link arrives. */
    private long underWay(int tensor, long given) {
        int channel = handover.channelOfTensor(tensor);
        WorkUnit unit = shape.unitAt(tensor % shape.units());
        long occupancy = costs.occupancyNanos(channel(channel), unit);
        int link = linkOf[channel];
        linkFree[link] = Math.max(given, linkFree[link]) + occupancy;
        return linkFree[link] + latency[channel];
    }
}
