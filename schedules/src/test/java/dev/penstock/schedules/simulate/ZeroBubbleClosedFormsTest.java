package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.zerobubble.InterleavedZeroBubble;
import dev.penstock.schedules.generate.zerobubble.ZeroBubbleH1;
import dev.penstock.schedules.generate.zerobubble.ZeroBubbleH2;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/**
 * What Zero Bubble Pipeline Parallelism promises (sections 2.1 to 2.3 and table 2). The forms hold
 * while a backward for the weights is no longer than the two other ops.
 */
class ZeroBubbleClosedFormsTest {
    private static final List<OpTimes> TIMES =
            List.of(
                    new OpTimes(1, 1, 1),
                    new OpTimes(3, 4, 2),
                    new OpTimes(4, 3, 2),
                    new OpTimes(5, 4, 3),
                    new OpTimes(2, 3, 2),
                    new OpTimes(7, 2, 1));

    private record OpTimes(long forward, long backwardInput, long backwardWeight) {
        CostModel costs() {
            return CostModel.split(forward, backwardInput, backwardWeight, 0);
        }

        long work() {
            return forward + backwardInput + backwardWeight;
        }
    }

    private interface Check {
        void at(int ranks, int microBatches, OpTimes times);
    }

    private static void everywhere(Check check) {
        for (int ranks = 1; ranks <= 6; ranks++) {
            for (int microBatches = 1; microBatches <= 12; microBatches++) {
                for (OpTimes times : TIMES) {
                    check.at(ranks, microBatches, times);
                }
            }
        }
    }

    private static BubbleReport bubble(Schedule schedule, OpTimes times) {
        return ScheduleSimulator.simulate(schedule, times.costs()).bubble();
    }

    private static int peak(Schedule schedule) {
        return MemoryProfile.of(schedule, PassKind.TRAINING).peakUnits();
    }

    private static long longestIdleInSpan(BubbleReport bubble) {
        return bubble.ranks().stream()
                .mapToLong(BubbleReport.RankTime::idleInSpanNanos)
                .max()
                .orElseThrow();
    }

    @Test
    void h1IdlesForForwardAndInputLessWeight() {
        everywhere(
                (ranks, microBatches, times) -> {
                    Schedule h1 = ZeroBubbleH1.schedule(PipelineShape.of(ranks, microBatches));

                    if (microBatches >= ranks) {
                        BubbleReport bubble = bubble(h1, times);
                        long idle =
                                (ranks - 1)
                                        * (times.forward
                                                + times.backwardInput
                                                - times.backwardWeight);
                        assertThat(bubble.makespanNanos() - microBatches * times.work())
                                .isEqualTo(idle);
                        // the first rank pays all of it between its first and its last op
                        assertThat(bubble.ranks().getFirst().idleInSpanNanos()).isEqualTo(idle);
                    }
                    for (int rank = 0; rank < ranks; rank++) {
                        assertThat(MemoryProfile.of(h1, PassKind.TRAINING).ranks().get(rank))
                                .extracting(MemoryProfile.RankPeak::peakUnits)
                                .isEqualTo(Math.min(ranks, microBatches));
                    }
                });
    }

    @Test
    void h1InSlicesIdlesForASliceOfIt() {
        everywhere(
                (ranks, microBatches, times) -> {
                    for (int slices = 1; slices <= 4; slices++) {
                        Schedule h1 =
                                ZeroBubbleH1.schedule(
                                        PipelineShape.of(ranks, microBatches, slices));

                        if (microBatches >= ranks) {
                            assertThat(bubble(h1, times).makespanNanos())
                                    .isEqualTo(
                                            (long) microBatches * slices * times.work()
                                                    + (ranks - 1)
                                                            * (times.forward
                                                                    + times.backwardInput
                                                                    - times.backwardWeight));
                        }
                        assertThat(peak(h1))
                                .isEqualTo(Math.min(ranks + slices - 1, microBatches * slices));
                    }
                });
    }

    @Test
    void h2IdlesForOneWeightLessInEverySpan() {
        everywhere(
                (ranks, microBatches, times) -> {
                    for (int slices = 1; slices <= 3; slices++) {
                        var shape = PipelineShape.of(ranks, microBatches, slices);
                        Schedule h2 = ZeroBubbleH2.schedule(shape);

                        if (microBatches >= 2 * ranks - 1) {
                            BubbleReport bubble = bubble(h2, times);
                            long inSpan =
                                    (ranks - 1)
                                            * (times.forward
                                                    + times.backwardInput
                                                    - 2 * times.backwardWeight);
                            // at the barrier, all wait for the rank that started last
                            long flush = (ranks - 1) * times.forward;
                            assertThat(longestIdleInSpan(bubble)).isEqualTo(inSpan);
                            assertThat(bubble.makespanNanos())
                                    .isEqualTo(
                                            shape.unitsPerStage() * times.work()
                                                    + Math.max(inSpan, flush));
                        }
                        assertThat(peak(h2))
                                .isEqualTo(Math.min(2 * ranks - 2 + slices, shape.unitsPerStage()));
                    }
                });
    }

    @Test
    void h2DoesNotIdleInSpanWhenAllOpsTakeTheSameTime() {
        for (int ranks = 1; ranks <= 8; ranks++) {
            Schedule h2 = ZeroBubbleH2.schedule(PipelineShape.of(ranks, 2 * ranks - 1));

            assertThat(bubble(h2, new OpTimes(5, 5, 5)).ranks())
                    .extracting(BubbleReport.RankTime::idleInSpanNanos)
                    .containsOnly(0L);
        }
    }

    @Test
    void interleavedIdlesForAChunkOfIt() {
        everywhere(
                (ranks, microBatches, times) -> {
                    int rounds = Math.max(1, microBatches / ranks);
                    for (int chunks = 1; chunks <= 3 && microBatches % rounds == 0; chunks++) {
                        var shape = new PipelineShape(ranks, chunks, microBatches, List.of(1));
                        Schedule schedule =
                                InterleavedZeroBubble.schedule(shape, OptionalInt.empty());

                        if (microBatches >= ranks) {
                            long idle =
                                    bubble(schedule, times).makespanNanos()
                                            - (long) microBatches * chunks * times.work();
                            assertThat(idle)
                                    .isEqualTo(
                                            (ranks - 1)
                                                    * (times.forward
                                                            + times.backwardInput
                                                            - times.backwardWeight));
                        }
                        int group = microBatches / rounds;
                        assertThat(peak(schedule))
                                .isEqualTo(
                                        Math.min(
                                                (chunks - 1) * group + ranks,
                                                microBatches * chunks));
                    }
                });
    }
}
