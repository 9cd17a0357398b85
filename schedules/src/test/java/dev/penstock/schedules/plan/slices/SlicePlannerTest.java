package dev.penstock.schedules.plan.slices;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class SlicePlannerTest {
    private static final long MICROS = 1_000;

    /** 175B on 96 stages of 4 GPUs (setting 9 of TeraPipe), recovered from its uniform slices. */
    private static final SliceCost SETTING_9 =
            (length, _) -> Math.max(9_500 * MICROS, 4_960 * MICROS + 47_700L * length);

    /** Every way to write {@code total} as an ordered sum of positive parts. */
    private static List<List<Integer>> compositions(int total) {
        if (total == 0) {
            return List.of(List.of());
        }
        List<List<Integer>> all = new ArrayList<>();
        for (int first = 1; first <= total; first++) {
            for (List<Integer> rest : compositions(total - first)) {
                List<Integer> one = new ArrayList<>(List.of(first));
                one.addAll(rest);
                all.add(one);
            }
        }
        return all;
    }

    private static SliceCost random(Random random, int tokens) {
        var costs = new long[tokens + 1][tokens + 1];
        for (long[] row : costs) {
            for (int i = 0; i < row.length; i++) {
                row[i] = random.nextInt(100);
            }
        }
        return (length, context) -> costs[length][context];
    }

    private static long bruteForce(SliceCost cost, int points, int grid, int stages) {
        return compositions(points).stream()
                .map(parts -> parts.stream().map(part -> part * grid).toList())
                .mapToLong(parts -> SlicePlan.of(parts, cost, stages).makespanNanos())
                .min()
                .orElseThrow();
    }

    @Test
    void findsWhatBruteForceFinds() {
        Random random = new Random(17);
        for (int points = 1; points <= 9; points++) {
            for (int stages : new int[] {1, 2, 3, 7, 40}) {
                for (int grid : new int[] {1, 3}) {
                    SliceCost cost = random(random, points * grid);

                    SlicePlan plan = SlicePlanner.plan(cost, points * grid, grid, stages, 1, 0);

                    assertThat(plan.makespanNanos())
                            .isEqualTo(bruteForce(cost, points, grid, stages));
                    assertThat(plan.lengths().stream().mapToInt(i -> i).sum())
                            .isEqualTo(points * grid);
                    assertThat(plan.lengths()).allMatch(length -> length % grid == 0);
                }
            }
        }
    }

    @Test
    void moreMicroBatchesWeighTheSumMore() {
        Random random = new Random(21);
        for (int microBatches : new int[] {1, 2, 5, 40}) {
            for (int stages : new int[] {1, 3, 20}) {
                SliceCost cost = random(random, 8);

                SlicePlan plan = SlicePlanner.plan(cost, 8, 1, stages, microBatches, 0);

                long best =
                        compositions(8).stream()
                                .mapToLong(
                                        parts ->
                                                SlicePlan.of(parts, cost, stages)
                                                        .makespanNanos(microBatches))
                                .min()
                                .orElseThrow();
                assertThat(plan.makespanNanos(microBatches)).isEqualTo(best);
            }
        }
        assertThatThrownBy(() -> SlicePlanner.plan((l, _) -> l, 8, 1, 2, 0, 0))
                .hasMessage("expected 1 micro-batch or more, got 0");
    }

    @Test
    void epsilonCostsAtMostItselfForEachFurtherStage() {
        Random random = new Random(18);
        boolean anyLoss = false;
        for (int round = 0; round < 300; round++) {
            SliceCost cost = random(random, 8);
            int stages = 1 + random.nextInt(10);

            long rough = SlicePlanner.plan(cost, 8, 1, stages, 1, 20).makespanNanos();

            long best = bruteForce(cost, 8, 1, stages);
            assertThat(rough).isBetween(best, best + (stages - 1) * 20L);
            anyLoss |= rough > best;
        }
        assertThat(anyLoss).isTrue();
    }

    @Test
    void batchAndSequenceTogetherFindWhatBruteForceFinds() {
        Random random = new Random(19);
        for (int batch = 1; batch <= 4; batch++) {
            for (int stages : new int[] {1, 3, 20}) {
                List<SliceCost> costs = new ArrayList<>();
                for (int b = 1; b <= batch; b++) {
                    costs.add(random(random, 4));
                }
                IntFunction<SliceCost> costOf = b -> costs.get(b - 1);

                BatchSlicePlan exact = BatchSlicePlanner.plan(costOf, batch, 4, 1, stages, 0);

                assertThat(exact.makespanNanos())
                        .isEqualTo(bruteForceOfBatch(costOf, batch, stages));
                assertThat(sequences(exact)).isEqualTo(batch);
            }
        }
    }

    private static int sequences(BatchSlicePlan plan) {
        return plan.parts().stream().mapToInt(BatchSlicePlan.Part::sequences).sum();
    }

    /** Every cut of the batch, and every slicing of each part of it. */
    private static long bruteForceOfBatch(IntFunction<SliceCost> costOf, int batch, int stages) {
        long best = Long.MAX_VALUE;
        for (List<Integer> cut : compositions(batch)) {
            List<List<BatchSlicePlan.Part>> plans = List.of(List.of());
            for (int b : cut) {
                List<List<BatchSlicePlan.Part>> longer = new ArrayList<>();
                for (List<BatchSlicePlan.Part> plan : plans) {
                    for (List<Integer> slices : compositions(4)) {
                        List<BatchSlicePlan.Part> next = new ArrayList<>(plan);
                        SlicePlan part = SlicePlan.of(slices, costOf.apply(b), stages);
                        next.add(new BatchSlicePlan.Part(b, part));
                        longer.add(next);
                    }
                }
                plans = longer;
            }
            for (List<BatchSlicePlan.Part> plan : plans) {
                best = Math.min(best, new BatchSlicePlan(plan, stages).makespanNanos());
            }
        }
        return best;
    }

    @Test
    void theLawOfSetting9GivesThePapersUniformSlices() {
        double[] paper = {9.990, 2.902, 1.892, 1.547, 1.593, 2.227, 3.252};
        int[] slices = {1, 4, 8, 16, 32, 64, 128};
        for (int i = 0; i < slices.length; i++) {
            List<Integer> uniform = Collections.nCopies(2 * slices[i], 2048 / slices[i]);

            double seconds = SlicePlan.of(uniform, SETTING_9, 96).makespanNanos() / 1e9;

            assertThat(seconds).isCloseTo(paper[i], within(paper[i] / 10));
        }
    }

    @Test
    void planOfSetting9IsAtLeastAsGoodAsEveryUniformOne() {
        BatchSlicePlan plan =
                BatchSlicePlanner.plan(
                        b -> (length, context) -> SETTING_9.nanos(b * length, context),
                        2,
                        2048,
                        8,
                        96,
                        0);

        for (int slices = 1; slices <= 256; slices *= 2) {
            List<Integer> uniform = Collections.nCopies(2 * slices, 2048 / slices);
            assertThat(plan.makespanNanos())
                    .isLessThanOrEqualTo(SlicePlan.of(uniform, SETTING_9, 96).makespanNanos());
        }
        long papers = SlicePlan.of(slicesOfThePaper(), SETTING_9, 96).makespanNanos();
        assertThat(papers / 1e9).isCloseTo(1.481, within(0.1481));
        assertThat(plan.makespanNanos()).isLessThanOrEqualTo(papers);
        assertThat(plan.parts().stream().mapToInt(BatchSlicePlan.Part::sequences).sum())
                .isEqualTo(2);
    }

    @Test
    void theBestUniformSlicesOfSetting9AreSixteen() {
        int best =
                IntStream.iterate(1, n -> n <= 256, n -> 2 * n)
                        .boxed()
                        .min(Comparator.comparingLong(SlicePlannerTest::uniformOfSetting9))
                        .orElseThrow();

        assertThat(best).isEqualTo(16);
    }

    private static long uniformOfSetting9(int slices) {
        List<Integer> uniform = Collections.nCopies(2 * slices, 2048 / slices);
        return SlicePlan.of(uniform, SETTING_9, 96).makespanNanos();
    }

    /** [120]*4 + [112]*6 + [104]*8 + [64], twice. */
    private static List<Integer> slicesOfThePaper() {
        List<Integer> slices = new ArrayList<>();
        for (int sequence = 0; sequence < 2; sequence++) {
            slices.addAll(Collections.nCopies(4, 120));
            slices.addAll(Collections.nCopies(6, 112));
            slices.addAll(Collections.nCopies(8, 104));
            slices.add(64);
        }
        return slices;
    }

    @Test
    void longerContextMakesLaterSlicesShorter() {
        SliceCost cost =
                (length, context) -> 1_000_000 + 50_000L * length + 100L * length * context;

        List<Integer> lengths = SlicePlanner.plan(cost, 2048, 8, 48, 1, 0).lengths();

        assertThat(lengths).hasSizeGreaterThan(2);
        assertThat(lengths.getFirst()).isGreaterThan(lengths.getLast());
    }

    /** It takes a second because only those of the chosen slices are asked for again. */
    @Test
    void asksForEveryCostOnceInThePapersLargestSetting() {
        long[] asked = new long[1];
        SliceCost cost =
                (length, context) -> {
                    asked[0]++;
                    return 4_960_000 + 47_700L * length + 5L * length * context;
                };

        SlicePlan exact = SlicePlanner.plan(cost, 2048, 8, 96, 1, 0);
        SlicePlan rough = SlicePlanner.plan(cost, 2048, 8, 96, 1, SlicePlanner.PAPER_EPSILON_NANOS);

        long points = 2048 / 8;
        assertThat(asked[0] / 2).isBetween(points * (points + 1) / 2, points * (points + 3) / 2);
        assertThat(rough.makespanNanos())
                .isBetween(
                        exact.makespanNanos(),
                        exact.makespanNanos() + 95 * SlicePlanner.PAPER_EPSILON_NANOS);
    }

    @Test
    void refusesWhatMakesNoSense() {
        assertThatThrownBy(() -> SlicePlanner.plan((_, _) -> 1, 100, 8, 4, 1, 0))
                .hasMessageContaining("100 tokens and a grid of 8");
        assertThatThrownBy(() -> SlicePlanner.plan((_, _) -> 1, 64, 8, 0, 1, 0))
                .hasMessageContaining("1 stage");
        assertThatThrownBy(() -> SlicePlanner.plan((_, _) -> 1, 64, 8, 2, 1, -1))
                .hasMessageContaining("epsilon");
        assertThatThrownBy(() -> SlicePlanner.plan((_, _) -> -1, 64, 8, 2, 1, 0))
                .hasMessageContaining("0 or more nanoseconds");
    }
}
