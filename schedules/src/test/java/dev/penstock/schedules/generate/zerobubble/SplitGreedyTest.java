package dev.penstock.schedules.generate.zerobubble;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.NaiveStarts;
import dev.penstock.schedules.generate.base.OpCosts;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Properties of greedy orders of random problems, judged by the naive run. */
class SplitGreedyTest {
    private static final int ROUNDS = 300;

    /** A problem with choices for it. */
    private record Case(SplitProblem problem, SplitGreedy.Choices choices) {
        static Case random(Random random) {
            int ranks = 1 + random.nextInt(4);
            int microBatches = 1 + random.nextInt(6);
            List<OpCosts> costs =
                    IntStream.range(0, ranks)
                            .mapToObj(
                                    _ ->
                                            new OpCosts(
                                                    1 + random.nextInt(6),
                                                    1 + random.nextInt(6),
                                                    1 + random.nextInt(6),
                                                    random.nextInt(4)))
                            .toList();
            List<Integer> leads =
                    IntStream.range(0, ranks).mapToObj(_ -> 1 + random.nextInt(5)).toList();
            return new Case(
                    new SplitProblem(microBatches, 1 + random.nextInt(6), costs),
                    new SplitGreedy.Choices(leads, random.nextBoolean(), random.nextInt(5)));
        }

        SplitOrder order() {
            return SplitGreedy.order(problem, choices, Long.MAX_VALUE).orElseThrow();
        }
    }

    private static void forAll(BiConsumer<Case, SplitOrder> check) {
        Random random = new Random(17);
        for (int round = 0; round < ROUNDS; round++) {
            Case any = Case.random(random);
            check.accept(any, any.order());
        }
    }

    @Test
    void everyPassRunsAndNoRankStandsStill() {
        forAll(
                (any, order) -> {
                    for (List<SplitPass> passes : order.ranks()) {
                        for (SplitPass pass : SplitPass.values()) {
                            assertThat(passes.stream().filter(pass::equals))
                                    .hasSize(any.problem().microBatches());
                        }
                    }
                    assertThat(NaiveStarts.of(order, any.problem()).isStuck()).isFalse();
                });
    }

    @Test
    void noRankHoldsMoreThanTheLimitNorRunsFurtherAheadThanItsLead() {
        forAll(
                (any, order) -> {
                    for (int rank = 0; rank < any.problem().ranks(); rank++) {
                        int live = 0;
                        int ahead = 0;
                        for (SplitPass pass : order.ranks().get(rank)) {
                            live += pass == SplitPass.FORWARD ? 1 : 0;
                            live -= pass == SplitPass.BACKWARD_WEIGHT ? 1 : 0;
                            ahead += pass == SplitPass.FORWARD ? 1 : 0;
                            ahead -= pass == SplitPass.BACKWARD_INPUT ? 1 : 0;
                            assertThat(live).isBetween(0, any.problem().limit());
                            assertThat(ahead).isBetween(0, any.choices().leads().get(rank));
                        }
                    }
                });
    }

    /** An order is of interest if it takes no longer than that, to the nanosecond. */
    @Test
    void ordersThatTakeTooLongAreDropped() {
        forAll(
                (any, order) -> {
                    long makespan = SplitTiming.of(order, any.problem()).makespan();

                    assertThat(SplitGreedy.order(any.problem(), any.choices(), makespan))
                            .contains(order);
                    assertThat(SplitGreedy.order(any.problem(), any.choices(), makespan - 1))
                            .isEmpty();
                });
    }

    /** A gap that a backward for the weights fits into, and so much of it as is chosen. */
    @Test
    void noGapIsLeftThatWeightsWouldFill() {
        forAll(
                (any, order) -> {
                    NaiveStarts naive = NaiveStarts.of(order, any.problem());
                    for (int rank = 0; rank < any.problem().ranks(); rank++) {
                        int owed = 0;
                        List<SplitPass> passes = order.ranks().get(rank);
                        long weight = any.problem().costs().get(rank).backwardWeightNanos();
                        for (int p = 0; p < passes.size(); p++) {
                            long free = p == 0 ? 0 : naive.end(rank, p - 1);
                            if (owed > 0) {
                                assertThat(4 * (naive.start(rank, p) - free))
                                        .as("rank %d, pass %d of %s, %s", rank, p, order, any)
                                        .isLessThanOrEqualTo(
                                                Math.max(
                                                        0,
                                                        any.choices().gapQuarters() * weight - 1));
                            }
                            owed += passes.get(p) == SplitPass.BACKWARD_INPUT ? 1 : 0;
                            owed -= passes.get(p) == SplitPass.BACKWARD_WEIGHT ? 1 : 0;
                        }
                    }
                });
    }

    /** One rank, nothing to wait for: forwards and backwards take turns at the lead. */
    @Test
    void aRankAloneRunsAheadByItsLeadAndTakesTurns() {
        var problem = new SplitProblem(4, 4, List.of(new OpCosts(2, 2, 2, 0)));

        assertThat(letters(problem, new SplitGreedy.Choices(List.of(1), false, 4)))
                .isEqualTo("FIFIFIFIWWWW");
        assertThat(letters(problem, new SplitGreedy.Choices(List.of(2), true, 4)))
                .isEqualTo("FFIFIFIIWWWW");
        assertThat(letters(problem, new SplitGreedy.Choices(List.of(4), true, 4)))
                .isEqualTo("FFFFIIIIWWWW");
        var narrow = new SplitProblem(4, 2, List.of(new OpCosts(2, 2, 2, 0)));
        assertThat(letters(narrow, new SplitGreedy.Choices(List.of(2), true, 4)))
                .isEqualTo("FFIWFIWFIIWW");
    }

    private static String letters(SplitProblem problem, SplitGreedy.Choices choices) {
        var letters = new ArrayList<String>();
        for (SplitPass pass :
                SplitGreedy.order(problem, choices, Long.MAX_VALUE)
                        .orElseThrow()
                        .ranks()
                        .getFirst()) {
            letters.add(
                    switch (pass) {
                        case FORWARD -> "F";
                        case BACKWARD_INPUT -> "I";
                        case BACKWARD_WEIGHT -> "W";
                    });
        }
        return String.join("", letters);
    }
}
