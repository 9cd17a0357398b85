package dev.penstock.schedules.generate.vshaped;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Which way of filling in the weights is best depends on the costs. */
class VShapedOrderTest {
    private static final int RANKS = 8;
    private static final int MICRO_BATCHES = 32;

    private static long makespan(Schedule schedule, OpCosts costs) {
        return ScheduleSimulator.simulate(
                        schedule,
                        CostModel.split(
                                costs.forwardNanos(),
                                costs.backwardInputNanos(),
                                costs.backwardWeightNanos(),
                                costs.communicationNanos()))
                .makespanNanos();
    }

    /** Expected makespan of the schedule that is found, and of the one for equal costs. */
    private static void found(String kind, OpCosts costs, long expected, long forEqualCosts) {
        var shape = VSchedules.shape(RANKS, MICRO_BATCHES);
        var options = GenerateOptions.defaults().withCosts(costs);

        assertThat(makespan(Generators.generate(kind, shape, options), costs)).isEqualTo(expected);
        assertThat(makespan(Generators.generate(kind, shape), costs)).isEqualTo(forEqualCosts);
    }

    @Test
    void weightsWhileWaitingAreBestWhereTheyAreLong() {
        found("v-half", new OpCosts(10, 9, 14, 1), 2312, 2346);
    }

    @Test
    void weightsIfTheyFitAreBestWhereTensorsTravelForLong() {
        found("v-half", new OpCosts(100, 120, 80, 10), 23700, 23920);
    }

    @Test
    void theOrderForEqualCostsStaysWhereItIsBest() {
        found("v-min", new OpCosts(10, 9, 14, 1), 2427, 2427);
    }

    @Test
    void ranksMayCostDifferently() {
        var shape = VSchedules.shape(2, 4);
        var slow = new OpCosts(3, 3, 3, 0);
        var costs = List.of(OpCosts.unit(), slow);
        var units = new VUnits(2, 4);
        var slots = new VShapedSlots(units, VHalf.block(2));
        int[][] order = slots.ordersWithoutWeights();

        var timed =
                new VShapedOrder(units, order, costs, VHalf.limit(2), WeightFilling.WHILE_WAITING);

        CostModel model = (rank, _, op) -> op.computations().isEmpty() ? 0 : rank == 0 ? 1L : 3L;
        Schedule schedule = Pipeline.v("timed", shape, timed::write);
        assertThat(timed.makespan())
                .isEqualTo(ScheduleSimulator.simulate(schedule, model).makespanNanos())
                .isGreaterThanOrEqualTo(4 * 6 * 3);
    }

    @Test
    void whatTheSearchTimesIsWhatTheSimulatorTimes() {
        for (int ranks = 1; ranks <= 6; ranks++) {
            var costs = new OpCosts(10, 13, 7, 2);
            var units = new VUnits(ranks, 2 * ranks);
            var slots = new VShapedSlots(units, VMin.block(ranks));
            for (WeightFilling filling :
                    new WeightFilling[] {WeightFilling.WHILE_WAITING, WeightFilling.IF_IT_FITS}) {
                var order =
                        new VShapedOrder(
                                units,
                                slots.ordersWithoutWeights(),
                                Collections.nCopies(ranks, costs),
                                VMin.limit(ranks),
                                filling);

                Schedule schedule =
                        Pipeline.v("timed", VSchedules.shape(ranks, 2 * ranks), order::write);

                assertThat(makespan(schedule, costs)).isEqualTo(order.makespan());
            }
        }
    }
}
