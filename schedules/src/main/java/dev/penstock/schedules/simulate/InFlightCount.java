package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/** Counts the tensors in flight in a run with unbounded channels. */
final class InFlightCount {
    /** A transfer costs something, so that what depends on it is seen to come later. */
    private static final CostModel COSTS =
            (_, _, op) ->
                    switch (op) {
                        case Op.Forward _ -> 1_000_000;
                        case Op.Backward _ -> 2_000_000;
                        case Op.BackwardInput _, Op.BackwardWeight _, Op.Recompute _ -> 1_000_000;
                        case Op.Overlapped(_, Op.InputGradient b) ->
                                b instanceof Op.Backward ? 3_000_000 : 2_000_000;
                        case Op.Transfer _, Op.ReduceGradients _ -> 1;
                        case Op.ParameterOp _ -> 0;
                    };

    /** When the sends of a channel started and its receives ended, in program order. */
    private record Times(LongStream.Builder sends, LongStream.Builder receives) {
        Times() {
            this(LongStream.builder(), LongStream.builder());
        }

        /** A send holds its credit from its start to the end of a receive. */
        int mostInFlight() {
            long[] sent = sends.build().toArray();
            long[] received = receives.build().toArray();
            int returned = 0;
            int most = 1;
            for (int i = 0; i < sent.length; i++) {
                while (returned < received.length && received[returned] <= sent[i]) {
                    returned++;
                }
                most = Math.max(most, i + 1 - returned);
            }
            return most;
        }
    }

    private InFlightCount() {}

    static Map<Channel, Integer> of(Schedule lowered) {
        Timeline timeline = ScheduleSimulator.run(lowered, COSTS, InFlight.unbounded()).timeline();
        var handover = new Handover(lowered);
        var times = new @Nullable Times[handover.channels()];
        for (RankProgram program : lowered.programs()) {
            int rank = program.rank();
            for (int i = 0; i < timeline.opsRun(rank); i++) {
                Op op = program.ops().get(i);
                int channel = handover.channel(op);
                if (channel != Handover.NONE) {
                    @Nullable Times known = times[channel];
                    Times of = known == null ? new Times() : known;
                    times[channel] = of;
                    if (Handover.isSend(op)) {
                        of.sends().add(timeline.startNanos(rank, i));
                    } else {
                        of.receives().add(timeline.endNanos(rank, i));
                    }
                }
            }
        }
        var counts = new HashMap<Channel, Integer>();
        for (int i = 0; i < times.length; i++) {
            @Nullable Times of = times[i];
            if (of != null) {
                counts.put(handover.channelAt(i).orElseThrow(), of.mostInFlight());
            }
        }
        return counts;
    }
}
