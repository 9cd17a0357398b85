package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.InsertTransfers;
import dev.penstock.schedules.lower.Lowering;

import org.junit.jupiter.api.Test;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

class InFlightTest {
    private static final Channel THERE = new Channel(0, 1);
    private static final Channel BACK = new Channel(1, 0);

    /** Transfers take almost no time, as the count assumes. */
    private static final CostModel COSTS =
            (_, _, op) ->
                    switch (op) {
                        case Op.Forward _ -> 1_000_000;
                        case Op.Backward _ -> 2_000_000;
                        case Op.BackwardInput _, Op.BackwardWeight _, Op.Recompute _ -> 1_000_000;
                        case Op.Overlapped _ -> 3_000_000;
                        case Op.Transfer _, Op.ReduceGradients _ -> 1;
                        case Op.ActivationOp _, Op.ParameterOp _ -> 1;
                    };

    private static List<Long> starts(Schedule lowered, InFlight inFlight) {
        Timeline timeline = ScheduleSimulator.run(lowered, COSTS, inFlight).timeline();
        return IntStream.range(0, lowered.shape().ranks())
                .boxed()
                .flatMap(
                        rank ->
                                IntStream.range(0, timeline.opsRun(rank))
                                        .mapToObj(i -> timeline.startNanos(rank, i)))
                .toList();
    }

    @Test
    void withAutoEveryOpStartsAsEarlyAsWithUnboundedChannels() {
        RandomOrders.some(300)
                .map(InsertTransfers::into)
                .forEach(
                        lowered ->
                                assertThat(starts(lowered, InFlight.auto(lowered)))
                                        .isEqualTo(starts(lowered, InFlight.unbounded())));
    }

    @Test
    void withOneCreditLessThanAutoSomeOpStartsLater() {
        int tried = 0;
        for (int seed = 0; seed < 300; seed++) {
            Schedule lowered = InsertTransfers.into(RandomOrders.schedule(seed));
            Map<Channel, Integer> counts = InFlight.auto(lowered).capacities();
            for (Map.Entry<Channel, Integer> entry : counts.entrySet()) {
                if (entry.getValue() > 1) {
                    tried++;
                    var fewer = new HashMap<>(counts);
                    fewer.put(entry.getKey(), entry.getValue() - 1);
                    assertThat(starts(lowered, new InFlight(fewer, 1)))
                            .isNotEqualTo(starts(lowered, InFlight.unbounded()));
                }
            }
        }
        assertThat(tried).isGreaterThan(100);
    }

    @Test
    void autoSpendsNoCreditThatNobodyUses() {
        Schedule lowered =
                InsertTransfers.into(Generators.generate("gpipe", PipelineShape.of(2, 5)));
        Schedule evaluation = Lowering.lowerForwardOnly(lowered);

        assertThat(InFlight.auto(lowered).capacities()).isEqualTo(Map.of(THERE, 1, BACK, 1));
        assertThat(InFlight.auto(evaluation).capacities()).isEqualTo(Map.of(THERE, 1));
    }

    @Test
    void autoCountsWhatPilesUpBeforeABusyReceiver() {
        Schedule lowered =
                InsertTransfers.into(
                        ScheduleText.parse(
                                """
                                ranks: 2
                                micro-batches: 4
                                rank 0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3
                                rank 1: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3
                                """));

        Map<Channel, Integer> counts = InFlight.auto(lowered).capacities();

        // sent just after 1, 2, 3, 4; received just after 1, 4, 7, 10
        assertThat(counts).containsEntry(THERE, 3);
        // sent just after 4, 7, 10, 13; received just after 4 (after the fourth forward), 7, 10, 13
        assertThat(counts).containsEntry(BACK, 1);
    }

    @Test
    void theLargerOfBothServesBoth() {
        var one = new InFlight(Map.of(THERE, 3, BACK, 1), 2);
        var other = new InFlight(Map.of(THERE, 1), 4);

        InFlight both = one.max(other);

        var expected = new HashMap<>(Map.of(THERE, 3, BACK, 4));
        assertThat(both).isEqualTo(new InFlight(expected, 4));
    }

    @Test
    void aChannelWithoutRoomIsRefused() {
        assertThatThrownBy(() -> InFlight.uniform(0)).hasMessageContaining("at least 1");
        assertThatThrownBy(() -> new InFlight(Map.of(THERE, 0), 1))
                .hasMessageContaining("at least 1");
    }
}
