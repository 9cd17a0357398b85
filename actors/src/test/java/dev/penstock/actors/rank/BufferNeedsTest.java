package dev.penstock.actors.rank;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.rank.BufferNeeds.Use;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.InFlight;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
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

    private static List<Boolean> events(Schedule lowered, int stage, Use use) {
        var events = new ArrayList<Boolean>();
        for (Op op : lowered.program(lowered.placement().rankOf(stage)).ops()) {
            boolean received =
                    use == Use.INPUT
                            ? op instanceof Op.ReceiveActivation
                            : op instanceof Op.ReceiveGradient;
            if (received && op.stage() == stage) {
                events.add(true);
            }
            for (Op.Compute part : op.computations()) {
                if (part instanceof Op.InputGradient && part.stage() == stage) {
                    events.add(false);
                }
            }
        }
        return events;
    }

    @Test
    void everyChannelHasTheSlotsThatCountingEveryMomentFinds() {
        for (String kind : Generators.kinds()) {
            int chunks =
                    switch (Generators.kind(kind).chunks()) {
                        case ONE -> 1;
                        case TWO, ANY -> 2;
                    };
            Schedule lowered =
                    Lowering.lower(
                            Generators.generate(kind, new PipelineShape(3, chunks, 6, List.of(1))));
            InFlight auto = InFlight.auto(lowered);
            for (int stage = 0; stage < lowered.shape().stages(); stage++) {
                int rank = lowered.placement().rankOf(stage);
                var needs = BufferNeeds.of(rank, lowered);
                for (Use use : List.of(Use.INPUT, Use.OUTPUT_GRADIENT)) {
                    List<Boolean> events = events(lowered, stage, use);
                    if (!events.contains(true)) {
                        continue;
                    }
                    int from = use == Use.INPUT ? stage - 1 : stage + 1;
                    for (int credits :
                            List.of(1, 2, auto.capacity(new Channel(from, stage)), 6, 50)) {
                        assertThat(needs.slots(stage, use, credits))
                                .as("%s, stage %d, %s, %d credits", kind, stage, use, credits)
                                .isEqualTo(Math.max(credits, naive(events, credits)));
                    }
                }
            }
        }
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

        assertThat(credits).isGreaterThan(microBatches / 2);
        assertThat(needs.peak(2, Use.INPUT)).isEqualTo(microBatches);
        assertThat(needs.slots(2, Use.INPUT, credits)).isEqualTo(microBatches);
    }

    @Test
    void anEvaluationNeedsNoMoreThanItsCreditsAndTheOneInUse() {
        Schedule order = Generators.generate("1f1b", PipelineShape.of(2, 6));
        Schedule evaluation = Lowering.lowerForwardOnly(order);
        var needs = BufferNeeds.of(1, Lowering.lower(order), evaluation);

        assertThat(needs.slots(1, Use.INPUT, 2)).isEqualTo(3);
    }
}
