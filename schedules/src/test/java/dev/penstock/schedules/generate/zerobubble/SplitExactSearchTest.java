package dev.penstock.schedules.generate.zerobubble;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.BruteForceOrders;
import dev.penstock.schedules.generate.base.OpCosts;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Against the shortest of all orders that take the micro-batches in their order. */
class SplitExactSearchTest {
    private static final long PLENTY = 10_000_000;
    private static final List<OpCosts> COSTS =
            List.of(
                    new OpCosts(1, 1, 1, 0),
                    new OpCosts(3, 5, 2, 1),
                    new OpCosts(2, 3, 5, 4),
                    new OpCosts(6, 2, 3, 2));

    /** Up to 3 ranks; each starts elsewhere in the list of costs, so that ranks differ. */
    private static List<SplitProblem> problems() {
        var problems = new ArrayList<SplitProblem>();
        for (int ranks = 1; ranks <= 3; ranks++) {
            for (int microBatches = 1; microBatches <= (ranks == 3 ? 2 : 3); microBatches++) {
                for (int limit = 1; limit <= microBatches; limit++) {
                    for (int first = 0; first < COSTS.size(); first++) {
                        var costs = new ArrayList<OpCosts>();
                        for (int rank = 0; rank < ranks; rank++) {
                            costs.add(COSTS.get((first + rank * (first % 3)) % COSTS.size()));
                        }
                        problems.add(new SplitProblem(microBatches, limit, costs));
                    }
                }
            }
        }
        return problems;
    }

    private static long shortest(SplitProblem problem) {
        return BruteForceOrders.shortest(
                problem.microBatches(), problem.limit(), problem.costs(), true);
    }

    @Test
    void findsTheShortestOrderHoweverLongTheKnownOneIs() {
        for (SplitProblem problem : problems()) {
            long shortest = shortest(problem);
            for (long known : new long[] {shortest + 1, shortest + 7, 10_000}) {
                assertThat(SplitExactSearch.shorterThan(problem, known, PLENTY))
                        .as("%s, shorter than %d", problem, known)
                        .hasValueSatisfying(
                                order ->
                                        assertThat(SplitTiming.of(order, problem).makespan())
                                                .isEqualTo(shortest));
            }
        }
    }

    @Test
    void findsNothingWhereTheKnownOrderIsTheShortest() {
        for (SplitProblem problem : problems()) {
            assertThat(SplitExactSearch.shorterThan(problem, shortest(problem), PLENTY))
                    .as("%s", problem)
                    .isEmpty();
        }
    }

    @Test
    void givesUpWithTheBestSoFar() {
        var problem = new SplitProblem(3, 2, List.of(COSTS.get(1), COSTS.get(2)));

        assertThat(SplitExactSearch.shorterThan(problem, 10_000, 0)).isEmpty();
        // the empty beginning, then one for each of 2 ranks x 3 micro-batches x 3 passes
        assertThat(SplitExactSearch.shorterThan(problem, 10_000, 18)).isEmpty();
        long before = Long.MAX_VALUE;
        for (long beginnings = 19; beginnings < 100_000; beginnings *= 2) {
            long found =
                    SplitExactSearch.shorterThan(problem, 10_000, beginnings)
                            .map(order -> SplitTiming.of(order, problem).makespan())
                            .orElse(Long.MAX_VALUE);
            assertThat(found).isLessThanOrEqualTo(before);
            before = found;
        }
        assertThat(before).isEqualTo(shortest(problem));
    }

    /** A rank alone never waits: its work is a bound that the empty beginning already meets. */
    @Test
    void whatTheWorkOfARankForbidsIsNotEvenTried() {
        var alone = new SplitProblem(3, 3, List.of(COSTS.get(1)));

        assertThat(SplitExactSearch.shorterThan(alone, 3 * (3 + 5 + 2), 1)).isEmpty();
        assertThat(SplitExactSearch.shorterThan(alone, 3 * (3 + 5 + 2) + 1, 10))
                .as("the empty beginning and 9 passes, no detour")
                .isPresent();
    }
}
