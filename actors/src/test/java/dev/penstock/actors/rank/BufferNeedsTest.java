package dev.penstock.actors.rank;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.wired.WiredOrder;
import dev.penstock.schedules.generate.wired.Wirings;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.InFlight;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;

class BufferNeedsTest {
    /** How far the sender and the receiver of one channel are. */
    private record Moment(int sent, int position) {}

    /**
     * The most slots in use at any moment, however fast or slow both sides are: every moment that
     * can be is visited.
     *
     * @param receives entry i is whether the receiver's i-th event takes a tensor, else it lets one
     *     go
     */
    private static int naive(List<Boolean> receives, int credits) {
        int all = (int) receives.stream().filter(r -> r).count();
        Set<Moment> seen = new HashSet<>();
        var open = new ArrayList<>(List.of(new Moment(0, 0)));
        int most = 0;
        while (!open.isEmpty()) {
            Moment now = open.removeLast();
            if (!seen.add(now)) {
                continue;
            }
            List<Boolean> past = receives.subList(0, now.position());
            int taken = (int) past.stream().filter(r -> r).count();
            int released = past.size() - taken;
            most = Math.max(most, now.sent() - released);
            if (now.sent() < all && now.sent() - taken < credits) {
                open.add(new Moment(now.sent() + 1, now.position()));
            }
            if (now.position() < receives.size()
                    && (!receives.get(now.position()) || taken < now.sent())) {
                open.add(new Moment(now.sent(), now.position() + 1));
            }
        }
        return most;
    }

    /** What a rank receives on a channel (true) and lets go of (false). */
    private static List<Boolean> events(Schedule lowered, int rank, ChannelKey channel) {
        var events = new ArrayList<Boolean>();
        Predicate<WorkUnit> travels =
                unit ->
                        unit.stage() == channel.stage()
                                && peer(lowered, unit, channel.fromStage()) == channel.fromPeer();
        for (Op op : lowered.program(rank).ops()) {
            boolean received =
                    channel.kind() == FrameKind.ACTIVATION
                            ? op instanceof Op.ReceiveActivation
                            : op instanceof Op.ReceiveGradient;
            if (received && op instanceof Op.UnitOp of && travels.test(of.unit())) {
                events.add(true);
            }
            for (Op.Compute part : op.computations()) {
                if (part instanceof Op.InputGradient && travels.test(part.unit())) {
                    events.add(false);
                }
            }
        }
        return events;
    }

    private static int peer(Schedule lowered, WorkUnit unit, int stage) {
        return lowered.placement()
                .wiring()
                .map(wiring -> wiring.peerOf(unit.microBatch(), stage))
                .orElse(0);
    }

    private static List<Schedule> orders() {
        List<Schedule> orders = new ArrayList<>();
        for (String kind : Generators.kinds()) {
            int chunks =
                    switch (Generators.kind(kind).chunks()) {
                        case ONE -> 1;
                        case TWO, ANY -> 2;
                    };
            orders.add(Generators.generate(kind, new PipelineShape(3, chunks, 6, List.of(1))));
        }
        for (WiredOrder.Backwards backwards : WiredOrder.Backwards.values()) {
            PipelineShape shape = PipelineShape.of(3, 7).withPeers(3);
            orders.add(
                    WiredOrder.schedule(
                            shape,
                            Wirings.equal(shape).random(5),
                            backwards,
                            Collections.nCopies(shape.ranks(), OpCosts.unit()),
                            WiredOrder.usualCaps(shape)));
        }
        return orders;
    }

    @Test
    void everyChannelHasTheSlotsThatCountingEveryMomentFinds() {
        for (Schedule order : orders()) {
            Schedule lowered = Lowering.lower(order);
            InFlight auto = InFlight.auto(lowered);
            Set<ChannelKey> opened = new HashSet<>();
            for (int rank = 0; rank < lowered.shape().ranks(); rank++) {
                var needs = BufferNeeds.of(rank, lowered);
                opened.addAll(needs.inbound());
                for (ChannelKey channel : needs.inbound()) {
                    List<Boolean> events = events(lowered, rank, channel);
                    var way =
                            new Channel(
                                    channel.fromStage(),
                                    channel.stage(),
                                    channel.fromPeer(),
                                    channel.toPeer());
                    for (int credits : List.of(1, 2, auto.capacity(way), 6, 50)) {
                        assertThat(needs.slots(channel, credits))
                                .as("%s, %s, %d credits", order.name(), channel, credits)
                                .isEqualTo(Math.max(credits, naive(events, credits)));
                    }
                }
            }
            assertThat(opened).as(order.name()).isEqualTo(travelled(lowered));
        }
    }

    /** The channels of all units that change ranks. */
    private static Set<ChannelKey> travelled(Schedule lowered) {
        Set<ChannelKey> channels = new HashSet<>();
        for (int i = 0; i < lowered.shape().units(); i++) {
            WorkUnit unit = lowered.shape().unitAt(i);
            if (lowered.placement().crossesBefore(unit)) {
                int here = unit.stage();
                int before = peer(lowered, unit, here - 1);
                int peer = peer(lowered, unit, here);
                channels.add(new ChannelKey(FrameKind.ACTIVATION, here - 1, here, before, peer));
                channels.add(new ChannelKey(FrameKind.GRADIENT, here, here - 1, peer, before));
            }
        }
        return channels;
    }

    @Test
    void aBreadthFirstStageHoldsEveryMicroBatchOnceAndNotOnceMoreUnderWay() {
        int microBatches = 8;
        Schedule lowered =
                Lowering.lower(
                        Generators.generate(
                                "breadth-first",
                                new PipelineShape(2, 2, microBatches, List.of(1))));
        int credits = InFlight.auto(lowered).capacity(new Channel(1, 2));
        var needs = BufferNeeds.of(0, lowered);
        var channel = new ChannelKey(FrameKind.ACTIVATION, 1, 2);

        assertThat(credits).isGreaterThan(microBatches / 2);
        assertThat(needs.peak(channel)).isEqualTo(microBatches);
        assertThat(needs.slots(channel, credits)).isEqualTo(microBatches);
    }

    @Test
    void anEvaluationNeedsNoMoreThanItsCreditsAndTheOneInUse() {
        Schedule order = Generators.generate("1f1b", PipelineShape.of(2, 6));
        Schedule evaluation = Lowering.lowerForwardOnly(order);
        var needs = BufferNeeds.of(1, Lowering.lower(order), evaluation);

        assertThat(needs.slots(new ChannelKey(FrameKind.ACTIVATION, 0, 1), 2)).isEqualTo(3);
    }
}
