package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import java.util.HashMap;
import java.util.Map;

/** Counts the tensors in flight in a run with unbounded channels. */
final class InFlightCount implements OpTimes {
    /** A transfer costs something, so that what depends on it is seen to come later. */
    private static final CostModel COSTS =
            (_, _, op) ->
                    switch (op) {
                        case Op.Forward _ -> 1_000_000;
                        case Op.Backward _ -> 2_000_000;
                        case Op.BackwardInput _, Op.BackwardWeight _, Op.Recompute _ -> 1_000_000;
                        case Op.Overlapped pair ->
                                pair.partner() instanceof Op.Backward ? 3_000_000 : 2_000_000;
                        case Op.Transfer _, Op.ReduceGradients _ -> 1;
                        case Op.ActivationOp _, Op.ParameterOp _ -> 0;
                    };

    private final Handover handover;

    /** By channel: when its sends started, in program order. */
    private final Times[] sends;

    /** By channel: when its receives ended. */
    private final Times[] receives;

    private InFlightCount(Schedule lowered) {
        this.handover = new Handover(lowered);
        this.sends = Times.some(handover.channels());
        this.receives = Times.some(handover.channels());
    }

    static Map<Channel, Integer> of(Schedule lowered) {
        var count = new InFlightCount(lowered);
        new Execution(lowered, COSTS, InFlight.unbounded(), count).run();
        var counts = new HashMap<Channel, Integer>();
        for (int i = 0; i < count.sends.length; i++) {
            if (count.sends[i].size() + count.receives[i].size() > 0) {
                Channel channel = count.handover.channelAt(i).orElseThrow();
                counts.put(channel, mostInFlight(count.sends[i], count.receives[i]));
            }
        }
        return counts;
    }

    @Override
    public void ran(int rank, int position, Op op, long start, long end, long free) {
        int channel = handover.channel(op);
        if (channel != Handover.NONE && op.isSend()) {
            sends[channel].add(start);
        } else if (channel != Handover.NONE) {
            receives[channel].add(end);
        }
    }

    /** A send holds its credit from its start to the end of a receive. */
    private static int mostInFlight(Times sent, Times received) {
        int returned = 0;
        int most = 1;
        for (int i = 0; i < sent.size(); i++) {
            while (returned < received.size() && received.get(returned) <= sent.get(i)) {
                returned++;
            }
            most = Math.max(most, i + 1 - returned);
        }
        return most;
    }
}
