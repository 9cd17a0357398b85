package dev.penstock.schedules.generate.vshaped;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.BubbleReport;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import org.junit.jupiter.api.Test;

/** Bubbles and peaks of the V kinds. Costs are those of a chunk; a rank's are twice as much. */
class VClosedFormsTest {
    private static final CostModel EQUAL = CostModel.split(1, 1, 1, 0);

    private interface Check {
        void at(int ranks, int microBatches);
    }

    private static void everywhere(Check check) {
        for (int ranks = 1; ranks <= 12; ranks++) {
            for (int microBatches = 1; microBatches <= 3 * ranks + 1; microBatches++) {
                check.at(ranks, microBatches);
            }
        }
    }

    private static BubbleReport report(Schedule schedule, CostModel costs) {
        return ScheduleSimulator.simulate(schedule, costs).bubble();
    }

    /** Time beyond the work of a rank, F = I = W = 1. */
    private static long bubble(Schedule schedule) {
        return report(schedule, EQUAL).makespanNanos() - 6L * schedule.shape().microBatches();
    }

    private static long bubbleOf1F1B(int ranks, int microBatches) {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(ranks, microBatches));
        return ScheduleSimulator.simulate(schedule, CostModel.of(2, 4, 0)).makespanNanos()
                - 6L * microBatches;
    }

    private static int peak(Schedule schedule) {
        return MemoryProfile.of(schedule, PassKind.TRAINING).peakUnits();
    }

    @Test
    void zeroBubbleVIdlesNowhereInASpan() {
        everywhere(
                (ranks, microBatches) -> {
                    Schedule schedule = ZeroBubbleV.schedule(VSchedules.shape(ranks, microBatches));

                    assertThat(peak(schedule)).isEqualTo(2 * Math.min(ranks, microBatches));
                    if (microBatches >= 2 * ranks - 1) {
                        assertThat(report(schedule, EQUAL).ranks())
                                .allSatisfy(rank -> assertThat(rank.idleInSpanNanos()).isZero());
                        assertThat(bubble(schedule)).isEqualTo(ranks - 1);
                    } else {
                        assertThat(bubble(schedule))
                                .isEqualTo(Math.max(ranks - 1, 4 * ranks - 2 - 2L * microBatches));
                    }
                });
    }

    @Test
    void vHalfHasHalfTheMemoryAndLessThanHalfTheBubbleOf1F1B() {
        everywhere(
                (ranks, microBatches) -> {
                    Schedule schedule = VSchedules.half(VSchedules.shape(ranks, microBatches));

                    assertThat(peak(schedule)).isLessThanOrEqualTo(2 * ((ranks + 2) / 2));
                    if (microBatches >= ranks) {
                        assertThat(peak(schedule)).isEqualTo(2 * ((ranks + 2) / 2));
                        assertThat(2 * bubble(schedule))
                                .isLessThanOrEqualTo(bubbleOf1F1B(ranks, microBatches));
                        assertThat(bubble(schedule))
                                .isEqualTo(
                                        ranks <= 2
                                                ? ranks - 1
                                                : 3 * ranks - (ranks % 2 == 0 ? 7 : 4));
                    }
                });
    }

    @Test
    void vMinHasAThirdOfTheMemoryAndTwoThirdsOfTheBubbleOf1F1B() {
        everywhere(
                (ranks, microBatches) -> {
                    Schedule schedule = VSchedules.min(VSchedules.shape(ranks, microBatches));

                    assertThat(peak(schedule)).isLessThanOrEqualTo(2 * ((ranks + 4) / 3));
                    if (microBatches >= ranks) {
                        assertThat(bubble(schedule))
                                .isLessThanOrEqualTo(Math.max(0, 4L * ranks - 5));
                        assertThat(3 * bubble(schedule))
                                .isLessThanOrEqualTo(2 * bubbleOf1F1B(ranks, microBatches));
                    }
                });
    }

    @Test
    void vHalfAndVMinKeepTheirBoundsInALongPipeline() {
        var shape = VSchedules.shape(32, 80);

        assertThat(peak(VSchedules.half(shape))).isEqualTo(34);
        assertThat(peak(VSchedules.min(shape))).isEqualTo(24);
        assertThat(bubbleOf1F1B(32, 80)).isEqualTo(186);
        assertThat(bubble(VSchedules.half(shape))).isEqualTo(89);
        assertThat(bubble(VSchedules.min(shape))).isEqualTo(122);
    }

    @Test
    void givenCostsMakeAnOrderThatIsAtLeastAsGoodForThem() {
        long[][] costs = {{2, 3, 1, 0}, {10, 11, 9, 1}, {2, 1, 3, 0}, {10, 10, 10, 3}};
        for (long[] cost : costs) {
            var given =
                    GenerateOptions.defaults()
                            .withCosts(new OpCosts(cost[0], cost[1], cost[2], cost[3]));
            CostModel model = CostModel.split(cost[0], cost[1], cost[2], cost[3]);
            for (int ranks = 1; ranks <= 8; ranks++) {
                for (String kind : new String[] {"v-half", "v-min"}) {
                    var shape = VSchedules.shape(ranks, 3 * ranks);
                    Schedule searched = Generators.generate(kind, shape, given);

                    assertThat(report(searched, model).makespanNanos())
                            .isLessThanOrEqualTo(
                                    report(Generators.generate(kind, shape), model)
                                            .makespanNanos());
                    assertThat(peak(searched))
                            .isLessThanOrEqualTo(
                                    kind.equals("v-half") ? VHalf.limit(ranks) : VMin.limit(ranks));
                }
            }
        }
    }

    @Test
    void dualPipeVIdlesAsItsAuthorsSayWhenForwardAndBackwardInputAreEquallyLong() {
        for (long work = 1; work <= 4; work++) {
            for (long weight = 1; weight <= work; weight++) {
                for (long pair = work + weight; pair <= 2 * work + weight; pair++) {
                    for (int ranks = 1; ranks <= 5; ranks++) {
                        dualPipeVIdles(ranks, 2 * ranks, work, weight, pair);
                        dualPipeVIdles(ranks, 2 * ranks + 3, work, weight, pair);
                    }
                }
            }
        }
    }

    /** The rank that idles longest: (PP/2 - 1)(F&B + B - 3W) with PP = 2 x ranks stages. */
    private static void dualPipeVIdles(
            int ranks, int microBatches, long forward, long weight, long pair) {
        CostModel apart = CostModel.split(forward, forward, weight, 0);
        CostModel costs =
                (rank, position, op) ->
                        op instanceof Op.Overlapped ? pair : apart.nanos(rank, position, op);
        Schedule schedule = DualPipeV.schedule(VSchedules.shape(ranks, microBatches));
        long backward = forward + weight;

        assertThat(
                        report(schedule, costs).ranks().stream()
                                .mapToLong(BubbleReport.RankTime::idleNanos)
                                .max())
                .hasValue((ranks - 1) * (pair + backward - 3 * weight));
        assertThat(peak(schedule)).isEqualTo(2 * ranks + 1);
    }
}
