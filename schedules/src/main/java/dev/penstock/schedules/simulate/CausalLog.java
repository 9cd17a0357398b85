package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Everything about a simulation that a later op may have waited for. */
final class CausalLog implements OpTimes {
    private final PipelineShape shape;
    private final Placement placement;
    private final CostModel costs;
    private final Handover handover;
    private final RecordedTimes recorded;

    /** By rank and position: when the rank could go on. */
    private final long[][] free;

    /** By sending and receiving rank. */
    private final Map<Long, LinkLog> links = new HashMap<>();

    /** By channel: the positions of its sends, and of its receives. */
    private final Map<Integer, List<Integer>> sends = new HashMap<>();

    private final Map<Integer, List<Integer>> receives = new HashMap<>();

    CausalLog(Schedule schedule, CostModel costs, InFlight inFlight) {
        this.shape = schedule.shape();
        this.placement = schedule.placement();
        this.costs = costs;
        this.handover = new Handover(schedule);
        this.recorded = new RecordedTimes(schedule);
        this.free = new long[shape.ranks()][];
        for (int rank = 0; rank < free.length; rank++) {
            free[rank] = new long[schedule.program(rank).ops().size()];
        }
        if (!new Execution(schedule, costs, inFlight, this).run().isEmpty()) {
            throw new IllegalArgumentException(
                    schedule.name() + " gets stuck, so that it has no end; validate it");
        }
    }

    @Override
    public void ran(int rank, int position, Op op, long start, long end, long rankFree) {
        recorded.ran(rank, position, op, start, end, rankFree);
        free[rank][position] = rankFree;
        for (Op part : op instanceof Op.Overlapped ? op.computations() : List.of(op)) {
            int tensor = handover.gives(part);
            if (tensor != Handover.NONE) {
                int number = handover.channelOfTensor(tensor);
                Channel channel = handover.channelAt(number).orElseThrow();
                long occupancy =
                        costs.occupancyNanos(channel, shape.unitAt(tensor % shape.units()));
                link(channel).add(tensor, position, op, rankFree, occupancy);
            }
        }
        int channel = handover.channel(op);
        if (channel != Handover.NONE) {
            (op.isSend() ? sends : receives)
                    .computeIfAbsent(channel, _ -> new ArrayList<>())
                    .add(position);
        }
    }

    Timeline timeline() {
        return recorded.timeline();
    }

    Handover handover() {
        return handover;
    }

    /** When the rank could go on after an op. */
    long freeAfter(int rank, int position) {
        return free[rank][position];
    }

    List<Integer> sends(int channel) {
        return sends.getOrDefault(channel, List.of());
    }

    List<Integer> receives(int channel) {
        return receives.getOrDefault(channel, List.of());
    }

    LinkLog link(Channel channel) {
        long from = placement.senderOf(channel);
        long key = from * shape.ranks() + placement.receiverOf(channel);
        return links.computeIfAbsent(key, _ -> new LinkLog());
    }
}
