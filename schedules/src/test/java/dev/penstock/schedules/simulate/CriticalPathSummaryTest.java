package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CriticalPath.Activity;
import dev.penstock.schedules.simulate.CriticalPathSummary.Leg;
import dev.penstock.schedules.simulate.CriticalPathSummary.Share;
import java.util.List;
import org.junit.jupiter.api.Test;

class CriticalPathSummaryTest {
    private static CriticalPathSummary of(Schedule schedule, CostModel costs) {
        return CriticalPathSummary.of(
                CriticalPath.of(schedule, costs, InFlight.unbounded()), schedule);
    }

    @Test
    void tellsOfEveryRankThatItPassesAndOfTheWaysBetween() {
        Schedule gpipe = Generators.generate("gpipe", PipelineShape.of(2, 2));

        CriticalPathSummary summary = of(gpipe, CostModel.of(3, 5, 2));

        // as long by way of 1B1, but this one stays on rank 0 for longer
        assertThat(summary.makespanNanos()).isEqualTo(3 + 2 + 16 + 2 + 5);
        assertThat(summary.legs())
                .containsExactly(
                        new Leg(0, Activity.RUNS, "0F0", "0F0", 1, 0, 3),
                        new Leg(0, Activity.UNDER_WAY, "0F0", "0F0", 1, 3, 5),
                        new Leg(1, Activity.RUNS, "1F0", "1B0", 3, 5, 16),
                        new Leg(1, Activity.UNDER_WAY, "1B0", "1B0", 1, 16, 18),
                        new Leg(0, Activity.RUNS, "0B0", "0B1", 2, 18, 28));
        assertThat(summary.shares())
                .containsExactly(
                        new Share("backward", 15, 15 / 28.0),
                        new Share("forward", 9, 9 / 28.0),
                        new Share("transfer", 4, 4 / 28.0));
    }

    @Test
    void sharesAndLegsMakeUpTheWholeStep() {
        for (Schedule order : RandomOrders.some(40).toList()) {
            CriticalPathSummary summary = of(order, CostModel.split(3, 5, 4, 2));

            assertThat(summary.shares().stream().mapToDouble(Share::share).sum())
                    .isCloseTo(1, within(1e-9));
            List<Leg> legs = summary.legs();
            assertThat(legs.getFirst().fromNanos()).isZero();
            assertThat(legs.getLast().toNanos()).isEqualTo(summary.makespanNanos());
            for (int i = 1; i < legs.size(); i++) {
                assertThat(legs.get(i).fromNanos()).isEqualTo(legs.get(i - 1).toNanos());
            }
        }
    }
}
