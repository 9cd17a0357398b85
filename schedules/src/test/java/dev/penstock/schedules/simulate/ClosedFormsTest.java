package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.generate.GPipe;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.generate.Seq1F1B;
import dev.penstock.schedules.generate.TeraPipe;
import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Bubbles and peaks that the papers promise, reached in the range where they hold. */
class ClosedFormsTest {
    private static final long[][] COSTS = {{1, 1}, {1, 2}, {2, 3}, {5, 2}};

    private interface Check {
        void at(int ranks, int microBatches, long forward, long backward);
    }

    private static void everywhere(Check check) {
        for (int ranks = 1; ranks <= 6; ranks++) {
            for (int microBatches = 1; microBatches <= 10; microBatches++) {
                for (long[] cost : COSTS) {
                    check.at(ranks, microBatches, cost[0], cost[1]);
                }
            }
        }
    }

    @Test
    void gpipeIdlesForRanksLessOneMicroBatches() {
        everywhere(
                (ranks, microBatches, f, b) -> {
                    for (BackwardOrder order : BackwardOrder.values()) {
                        Schedule gpipe =
                                GPipe.schedule(PipelineShape.of(ranks, microBatches), order);

                        BubbleReport bubble = bubble(gpipe, CostModel.of(f, b, 0));

                        assertThat(bubble.makespanNanos())
                                .isEqualTo((microBatches + ranks - 1) * (f + b));
                        assertThat(bubble.bubbleShare())
                                .isCloseTo(
                                        (ranks - 1.0) / (microBatches + ranks - 1), within(1e-12));
                        assertThat(peaks(gpipe)).containsOnly(microBatches);
                    }
                });
    }

    @Test
    void oneForwardOneBackwardIdlesAsGpipeAndHoldsLess() {
        everywhere(
                (ranks, microBatches, f, b) -> {
                    Schedule schedule =
                            OneForwardOneBackward.schedule(PipelineShape.of(ranks, microBatches));

                    BubbleReport bubble = bubble(schedule, CostModel.of(f, b, 0));

                    assertThat(bubble.makespanNanos())
                            .isEqualTo((microBatches + ranks - 1) * (f + b));
                    for (int rank = 0; rank < ranks; rank++) {
                        assertThat(peaks(schedule).get(rank))
                                .isEqualTo(Math.min(ranks - rank, microBatches));
                    }
                });
    }

    @Test
    void seq1f1bIdlesForASliceOfIt() {
        everywhere(
                (ranks, microBatches, f, b) -> {
                    for (int slices = 1; slices <= 4; slices++) {
                        var shape = PipelineShape.of(ranks, microBatches, slices);
                        Schedule schedule = Seq1F1B.schedule(shape);

                        BubbleReport bubble = bubble(schedule, CostModel.of(f, b, 0));

                        if (microBatches >= ranks) {
                            assertThat(bubble.makespanNanos())
                                    .isEqualTo((microBatches * slices + ranks - 1) * (f + b));
                        }
                        for (int rank = 0; rank < ranks; rank++) {
                            int warmUp = Math.min(ranks - rank - 2 + slices, microBatches * slices);
                            assertThat(peaks(schedule).get(rank))
                                    .isEqualTo(Math.min(warmUp + 1, microBatches * slices));
                        }
                    }
                });
    }

    @Test
    void terapipeTakesAllSlicesAndTheLongestForEachFurtherRank() {
        everywhere(
                (ranks, microBatches, f, b) -> {
                    for (int slices = 1; slices <= 4; slices++) {
                        var shape = PipelineShape.of(ranks, microBatches, slices);
                        // unequal slices: the first takes longest
                        long[] forward = descending(slices, f);
                        long[] backward = descending(slices, b);

                        BubbleReport bubble =
                                bubble(
                                        TeraPipe.schedule(shape),
                                        CostModel.ofSlices(forward, backward, 0));

                        long work =
                                microBatches
                                        * (Arrays.stream(forward).sum()
                                                + Arrays.stream(backward).sum());
                        assertThat(bubble.makespanNanos())
                                .isEqualTo(work + (ranks - 1) * (forward[0] + backward[0]));
                        assertThat(peaks(TeraPipe.schedule(shape)))
                                .containsOnly(microBatches * slices);
                    }
                });
    }

    @Test
    void idleInTheSpanAndAtTheBarrierAreToldApart() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(4, 8));

        List<BubbleReport.RankTime> ranks = bubble(schedule, CostModel.of(1, 1, 0)).ranks();

        assertThat(ranks).extracting(BubbleReport.RankTime::busyNanos).containsOnly(16L);
        assertThat(ranks)
                .extracting(BubbleReport.RankTime::idleInSpanNanos)
                .containsExactly(6L, 4L, 2L, 0L);
        assertThat(ranks)
                .extracting(BubbleReport.RankTime::flushIdleNanos)
                .containsExactly(0L, 2L, 4L, 6L);
        assertThat(ranks).extracting(BubbleReport.RankTime::idleNanos).containsOnly(6L);
    }

    @Test
    void aTransferDelaysGpipeOnceForEachHopThereAndBack() {
        Schedule schedule = GPipe.schedule(PipelineShape.of(4, 8), BackwardOrder.FIFO);

        long makespan = bubble(schedule, CostModel.of(2, 3, 7)).makespanNanos();

        assertThat(makespan).isEqualTo((8 + 3) * 5 + 2 * 3 * 7);
    }

    private static long[] descending(int slices, long last) {
        var costs = new long[slices];
        for (int i = 0; i < slices; i++) {
            costs[i] = last * (slices - i);
        }
        return costs;
    }

    private static BubbleReport bubble(Schedule schedule, CostModel costs) {
        return ScheduleSimulator.simulate(schedule, costs).bubble();
    }

    private static List<Integer> peaks(Schedule schedule) {
        return MemoryProfile.of(schedule, PassKind.TRAINING).ranks().stream()
                .map(MemoryProfile.RankPeak::peakUnits)
                .toList();
    }
}
