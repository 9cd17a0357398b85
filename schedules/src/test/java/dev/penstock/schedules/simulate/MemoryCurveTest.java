package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.WildCosts;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.ForwardOnly;
import dev.penstock.schedules.simulate.MemoryCurve.Point;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class MemoryCurveTest {
    private static final MemoryCurve.Sizes BYTES =
            new MemoryCurve.Sizes() {
                @Override
                public long activations(WorkUnit unit) {
                    return 100L + unit.slice();
                }

                @Override
                public long input(WorkUnit unit) {
                    return 7;
                }

                @Override
                public long parameters(int stage, LayerRange layers) {
                    return layers.isAll() ? 1_000 : 10;
                }
            };

    @Test
    void itsPeakIsThatOfTheMemoryProfile() {
        RandomOrders.some(300)
                .forEach(
                        order -> {
                            agree(order, PassKind.TRAINING, CostModel.of(3, 5, 2));
                            // if nothing takes time, everything happens at once
                            agree(order, PassKind.TRAINING, CostModel.of(0, 0, 0));
                            agree(ForwardOnly.of(order), PassKind.FORWARD_ONLY, CostModel.unit());
                        });
    }

    private static void agree(Schedule schedule, PassKind passKind, CostModel costs) {
        Timeline timeline = ScheduleSimulator.simulate(schedule, costs);

        List<MemoryCurve> curves = MemoryCurve.of(timeline, passKind);

        for (MemoryProfile.RankPeak peak : MemoryProfile.of(schedule, passKind).ranks()) {
            MemoryCurve curve = curves.get(peak.rank());
            assertThat(curve.peak()).isEqualTo(peak.peakUnits());
            assertThat(curve.peakActivations()).isEqualTo(peak.peakUnits());
            if (!curve.points().isEmpty()) {
                assertThat(curve.points().getLast().all()).isZero();
            }
        }
    }

    @Test
    void agreesAtEveryTimeWithAskingEveryUnit() {
        for (int seed = 0; seed < 150; seed++) {
            Schedule order = RandomOrders.schedule(seed);
            Timeline timeline = ScheduleSimulator.simulate(order, new WildCosts(seed));

            for (MemoryCurve curve : MemoryCurve.of(timeline, PassKind.TRAINING, BYTES)) {
                Map<Op, Integer> places = places(order.program(curve.rank()).ops());
                for (Point point : curve.points()) {
                    long held =
                            places.keySet().stream()
                                    .filter(Op.Forward.class::isInstance)
                                    .mapToLong(
                                            op ->
                                                    held(
                                                            timeline,
                                                            curve.rank(),
                                                            places,
                                                            ((Op.Forward) op).unit(),
                                                            point.nanos()))
                                    .sum();
                    assertThat(curve.at(point.nanos()).activations())
                            .as(() -> "at " + point + "\n" + ScheduleText.print(order))
                            .isEqualTo(held);
                }
            }
        }
    }

    private static Map<Op, Integer> places(List<Op> ops) {
        var places = new HashMap<Op, Integer>();
        for (int i = 0; i < ops.size(); i++) {
            places.put(ops.get(i), i);
        }
        return places;
    }

    private static long held(
            Timeline timeline, int rank, Map<Op, Integer> places, WorkUnit unit, long at) {
        int forward = places.getOrDefault(new Op.Forward(unit), -1);
        int last =
                places.getOrDefault(
                        new Op.Backward(unit),
                        places.getOrDefault(new Op.BackwardWeight(unit), -1));
        if (at < timeline.startNanos(rank, forward) || at >= timeline.endNanos(rank, last)) {
            return 0;
        }
        int recompute = places.getOrDefault(new Op.Recompute(unit), forward);
        boolean inputAlone =
                at >= timeline.endNanos(rank, forward) && at < timeline.startNanos(rank, recompute);
        return inputAlone ? BYTES.input(unit) : BYTES.activations(unit);
    }

    @Test
    void gatheredParametersAreHeldFromTheirGatherToTheirRelease() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        micro-batches: 1
                        rank 0: 0UNSHARD[0-1] 0F0 0RESHARD[0-1] 0UNSHARD[0-1] 0B0 0RESHARD[0-1]
                        """);
        Timeline timeline =
                ScheduleSimulator.simulate(
                        schedule, UnitCosts.parse("forward=2,backward=3,gather=4"));

        MemoryCurve curve = MemoryCurve.of(timeline, PassKind.TRAINING, BYTES).getFirst();

        assertThat(curve.points())
                .containsExactly(
                        new Point(0, 0, 10),
                        new Point(4, 100, 10),
                        new Point(6, 100, 0),
                        new Point(6, 100, 10),
                        new Point(13, 0, 10),
                        new Point(13, 0, 0));
        assertThat(curve.peak()).isEqualTo(110);
        assertThat(curve.at(3)).isEqualTo(new Point(0, 0, 10));
        assertThat(curve.at(-1)).isEqualTo(new Point(-1, 0, 0));
    }

    @Test
    void aRankWithoutOpsHoldsNothing() {
        Schedule schedule = ScheduleText.parse("ranks: 1\nmicro-batches: 1\nrank 0:\n");
        Timeline timeline = ScheduleSimulator.simulate(schedule, CostModel.unit());

        MemoryCurve curve = MemoryCurve.of(timeline, PassKind.TRAINING).getFirst();

        assertThat(curve.points()).isEmpty();
        assertThat(curve.peak() + curve.peakActivations()).isZero();
    }
}
