package dev.penstock.schedules.generate.zerobubble;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.generate.BruteForceOrders;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.BubbleReport;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class ZeroBubbleSearchTest {
    private static final List<OpCosts> COSTS =
            List.of(
                    new OpCosts(1, 1, 1, 0),
                    new OpCosts(3, 4, 2, 0),
                    new OpCosts(4, 2, 3, 0),
                    new OpCosts(2, 3, 5, 1),
                    new OpCosts(5, 4, 3, 1),
                    new OpCosts(3, 7, 5, 6),
                    new OpCosts(1, 2, 1, 3));

    private static GenerateOptions options(OpCosts costs) {
        return GenerateOptions.defaults().withCosts(costs);
    }

    private static CostModel model(OpCosts costs) {
        return CostModel.split(
                costs.forwardNanos(),
                costs.backwardInputNanos(),
                costs.backwardWeightNanos(),
                costs.communicationNanos());
    }

    /** With costs of each rank. */
    private static CostModel model(List<OpCosts> costs) {
        return new CostModel() {
            @Override
            public long nanos(int rank, int position, Op op) {
                return model(costs.get(rank)).nanos(rank, position, op);
            }

            @Override
            public long latencyNanos(Channel channel) {
                return costs.get(channel.fromStage()).communicationNanos();
            }
        };
    }

    private static long makespan(Schedule schedule, OpCosts costs) {
        return ScheduleSimulator.simulate(schedule, model(costs)).makespanNanos();
    }

    /** How long the slowest rank works on a step: the cost of a step that no barrier ends. */
    private static long longestSpan(Schedule schedule, OpCosts costs) {
        return ScheduleSimulator.simulate(schedule, model(costs)).bubble().ranks().stream()
                .mapToLong(rank -> rank.busyNanos() + rank.idleInSpanNanos())
                .max()
                .orElseThrow();
    }

    private static int peak(Schedule schedule) {
        return MemoryProfile.of(schedule, PassKind.TRAINING).peakUnits();
    }

    @Test
    void matchesOrBeatsTheHandMadeOrdersWithinTheirMemory() {
        for (int ranks = 1; ranks <= 6; ranks++) {
            for (int microBatches = 1; microBatches <= 10; microBatches++) {
                var shape = PipelineShape.of(ranks, microBatches);
                Schedule plain = OneForwardOneBackward.schedule(shape);
                Schedule h1 = ZeroBubbleH1.schedule(shape);
                Schedule h2 = ZeroBubbleH2.schedule(shape);
                for (OpCosts costs : COSTS) {
                    Schedule one = SearchedZeroBubble.onePerRank(shape, options(costs));
                    Schedule two = SearchedZeroBubble.twoPerRank(shape, options(costs));

                    assertThat(peak(one)).isLessThanOrEqualTo(ranks);
                    assertThat(peak(two)).isLessThanOrEqualTo(2 * ranks);
                    assertThat(makespan(one, costs))
                            .isLessThanOrEqualTo(makespan(plain, costs))
                            .isLessThanOrEqualTo(makespan(h1, costs));
                    assertThat(makespan(two, costs))
                            .isLessThanOrEqualTo(makespan(one, costs))
                            .isLessThanOrEqualTo(makespan(h2, costs));
                    assertThat(longestSpan(one, costs)).isLessThanOrEqualTo(longestSpan(h1, costs));
                    assertThat(longestSpan(two, costs)).isLessThanOrEqualTo(longestSpan(h2, costs));
                }
            }
        }
    }

    @Test
    void isTheBestOfAllOrdersOfTwoMicroBatches() {
        for (int ranks = 1; ranks <= 3; ranks++) {
            isTheBest(ranks, 2, false);
        }
    }

    @Test
    void isTheBestOfAllOrdersThatTakeTheMicroBatchesInTheirOrder() {
        for (int microBatches = 1; microBatches <= 4; microBatches++) {
            isTheBest(2, microBatches, true);
        }
        isTheBest(3, 3, true);
        isTheBest(4, 2, true);
    }

    @Test
    void isTheBestOfAllOrdersAlsoWhereRanksDiffer() {
        var light = new OpCosts(3, 3, 2, 1);
        var heavy = new OpCosts(6, 5, 4, 2);
        for (int microBatches = 1; microBatches <= 4; microBatches++) {
            isTheBest(microBatches, true, List.of(light, heavy));
            isTheBest(microBatches, true, List.of(heavy, light));
        }
        isTheBest(3, true, List.of(light, heavy, light));
        isTheBest(3, true, List.of(heavy, light, heavy));
    }

    private static void isTheBest(int ranks, int microBatches, boolean inOrder) {
        for (OpCosts costs : COSTS) {
            isTheBest(microBatches, inOrder, Collections.nCopies(ranks, costs));
        }
    }

    private static void isTheBest(int microBatches, boolean inOrder, List<OpCosts> costs) {
        var shape = PipelineShape.of(costs.size(), microBatches);
        // memory for more than all micro-batches is useless
        for (int limit = 1; limit <= microBatches; limit++) {
            Schedule searched =
                    SearchedZeroBubble.onePerRank(
                            shape,
                            GenerateOptions.defaults().withCosts(costs).withMemoryLimit(limit));

            assertThat(peak(searched)).isLessThanOrEqualTo(limit);
            assertThat(ScheduleSimulator.simulate(searched, model(costs)).makespanNanos())
                    .as("%d micro-batches, limit %d, %s", microBatches, limit, costs)
                    .isEqualTo(BruteForceOrders.shortest(microBatches, limit, costs, inOrder));
        }
    }

    @Test
    void whatTheSearchHoldsForUnbeatableIsNeverBeaten() {
        for (int ranks = 1; ranks <= 5; ranks++) {
            for (int microBatches = 1; microBatches <= 8; microBatches++) {
                for (int limit = 1; limit <= 2 * ranks; limit++) {
                    for (int heavy = 0; heavy < ranks; heavy++) {
                        List<OpCosts> costs =
                                new ArrayList<>(
                                        Collections.nCopies(ranks, new OpCosts(3, 3, 2, 1)));
                        costs.set(heavy, new OpCosts(5, 7, 4, 2));
                        var problem = new SplitProblem(microBatches, limit, costs);

                        SplitTiming found = SplitTiming.of(ZeroBubbleSearch.best(problem), problem);

                        SplitBounds bounds = SplitBounds.of(problem);
                        assertThat(found.makespan()).isGreaterThanOrEqualTo(bounds.makespan());
                        assertThat(found.longestSpan()).isGreaterThanOrEqualTo(bounds.span());
                    }
                }
            }
        }
    }

    /** 8 ranks, 24 micro-batches; where the bound is met, no search could find anything shorter. */
    @Test
    void findsShortOrdersAtAnyMemory() {
        var paper = new OpCosts(10, 10, 7, 1);
        var slowWays = new OpCosts(3, 7, 5, 6);
        var plain = new OpCosts(5, 4, 3, 1);
        var slowWeights = new OpCosts(2, 3, 5, 1);
        var slowForwards = new OpCosts(6, 2, 3, 2);

        assertMeetsBounds(16, paper, 725, 697);
        assertMeetsBounds(16, slowWays, 469, 469);
        assertMeetsBounds(16, plain, 330, 320);
        assertMeetsBounds(16, slowWeights, 261, 259);
        assertMeetsBounds(16, slowForwards, 320, 303);
        assertMeetsBounds(12, paper, 725, 725);
        assertMeetsBounds(12, plain, 332, 332);
        assertMeetsBounds(12, slowWeights, 267, 267);
        assertMeetsBounds(8, slowWeights, 275, 275);
        assertThat(search(12, slowWays).makespan()).isLessThanOrEqualTo(512);
        assertThat(search(12, slowForwards).longestSpan()).isLessThanOrEqualTo(318);
        assertThat(search(8, paper).makespan()).isLessThanOrEqualTo(767);
        assertThat(search(8, slowWays).makespan()).isLessThanOrEqualTo(625);
        assertThat(search(4, paper).makespan()).isLessThanOrEqualTo(1227);
        assertThat(search(4, slowWays).makespan()).isLessThanOrEqualTo(1083);
        assertThat(search(4, plain).makespan()).isLessThanOrEqualTo(582);
        assertThat(search(4, slowWeights).makespan()).isLessThanOrEqualTo(401);
        assertThat(search(4, slowForwards).makespan()).isLessThanOrEqualTo(605);
    }

    private static SplitProblem problem(int limit, OpCosts costs) {
        return new SplitProblem(24, limit, Collections.nCopies(8, costs));
    }

    private static SplitTiming search(int limit, OpCosts costs) {
        SplitProblem problem = problem(limit, costs);
        return SplitTiming.of(ZeroBubbleSearch.best(problem), problem);
    }

    private static void assertMeetsBounds(int limit, OpCosts costs, long makespan, long span) {
        SplitTiming found = search(limit, costs);

        assertThat(SplitBounds.of(problem(limit, costs)))
                .isEqualTo(new SplitBounds(makespan, span));
        assertThat(found.makespan()).isEqualTo(makespan);
        assertThat(found.longestSpan()).isEqualTo(span);
    }

    @Test
    void keepsAnyLimit() {
        var shape = PipelineShape.of(5, 9);
        long slower = Long.MAX_VALUE;
        for (int limit = 1; limit <= 12; limit++) {
            for (OpCosts costs : COSTS) {
                Schedule schedule =
                        SearchedZeroBubble.twoPerRank(
                                shape, options(costs).withMemoryLimit(limit + 0.5));

                ScheduleValidator.validate(
                                schedule, Conditions.training().withPeakUnitsLimit(limit))
                        .orThrow();
            }
            Schedule unit =
                    SearchedZeroBubble.twoPerRank(
                            shape, GenerateOptions.defaults().withMemoryLimit(limit));
            assertThat(makespan(unit, OpCosts.unit())).isLessThanOrEqualTo(slower);
            slower = makespan(unit, OpCosts.unit());
        }
    }

    @Test
    void ordersForTheCostsOfEachRank() {
        var light = new OpCosts(3, 3, 2, 1);
        var costs = List.of(light, new OpCosts(6, 5, 4, 1), light, light);
        var shape = PipelineShape.of(4, 12);

        Schedule searched =
                SearchedZeroBubble.onePerRank(shape, GenerateOptions.defaults().withCosts(costs));

        assertThat(ScheduleSimulator.simulate(searched, model(costs)).makespanNanos())
                .isEqualTo(184)
                .isLessThan(
                        ScheduleSimulator.simulate(ZeroBubbleH1.schedule(shape), model(costs))
                                .makespanNanos());
        // rank 1 cannot start before 3 + 1, works for 12 x 15
        assertThat(SplitBounds.of(new SplitProblem(12, 4, costs)).makespan()).isEqualTo(184);
    }

    /**
     * Table 4 of the paper, samples per GPU and second of the 28.3B model on 32 stages: ZB-2p 0.99,
     * 1.00, 1.00; ZB-1p 0.87, 0.90, 0.96; 1F1B 0.76, 0.80, 0.88 with 96, 128 and 256 micro-batches.
     * The paper's profile of that model: forward 10.4 ms, backward for the input 10.2 ms, for the
     * weights 7.7 ms, communication 0.41 ms. Its steps end without a barrier (section 4), so that a
     * step takes as long as its slowest rank works on it.
     */
    @Test
    void throughputIsInProportionToThePaper() {
        var costs = new OpCosts(10_400_000, 10_200_000, 7_700_000, 410_000);
        int[] microBatches = {96, 128, 256};
        double[][] paper = {{0.99, 1.00, 1.00}, {0.87, 0.90, 0.96}, {0.76, 0.80, 0.88}};
        double[][] ours = new double[3][3];
        for (int i = 0; i < 3; i++) {
            var shape = PipelineShape.of(32, microBatches[i]);
            List<Schedule> families =
                    List.of(
                            SearchedZeroBubble.twoPerRank(shape, options(costs)),
                            SearchedZeroBubble.onePerRank(shape, options(costs)),
                            OneForwardOneBackward.schedule(shape));
            for (int family = 0; family < 3; family++) {
                double seconds = longestSpan(families.get(family), costs) / 1e9;
                ours[family][i] = microBatches[i] / seconds / 32;
            }
        }

        for (int i = 0; i < 3; i++) {
            for (int family = 0; family < 3; family++) {
                double toPlain = ours[family][i] / ours[2][i];
                double toMost = ours[family][i] / ours[family][2];
                double paperToPlain = paper[family][i] / paper[2][i];
                double paperToMost = paper[family][i] / paper[family][2];
                assertThat(toPlain / paperToPlain).isCloseTo(1, within(0.1));
                assertThat(toMost / paperToMost).isCloseTo(1, within(0.1));
                // a micro-batch is one sample: even the throughput itself is near
                assertThat(ours[family][i] / paper[family][i]).isCloseTo(1, within(0.1));
            }
        }
    }

    @Test
    void shortSpansBreakTiesBetweenOrdersThatEndTogether() {
        Schedule schedule =
                SearchedZeroBubble.twoPerRank(PipelineShape.of(4, 8), GenerateOptions.defaults());

        assertThat(ScheduleSimulator.simulate(schedule, model(OpCosts.unit())).bubble().ranks())
                .extracting(BubbleReport.RankTime::idleInSpanNanos)
                .containsOnly(0L);
    }

    @Test
    void sameInputSameOrder() {
        var shape = PipelineShape.of(5, 11);
        GenerateOptions options = options(new OpCosts(5, 4, 3, 1));

        assertThat(SearchedZeroBubble.onePerRank(shape, options))
                .isEqualTo(SearchedZeroBubble.onePerRank(shape, options));
    }

    @Test
    void whatCannotBeSearchedIsRefusedWithWhatCould() {
        var options = GenerateOptions.defaults();
        var chunked = new PipelineShape(2, 2, 3, List.of(1));

        assertThatThrownBy(() -> SearchedZeroBubble.onePerRank(PipelineShape.of(2, 3, 4), options))
                .hasMessage("zb-1p runs whole sequences, got 4 slices; try 1 slice, or zb-h1");
        assertThatThrownBy(() -> SearchedZeroBubble.twoPerRank(chunked, options))
                .hasMessage("zb-2p runs one stage per rank, got 2 chunks; try 1");
        assertThatThrownBy(
                        () ->
                                SearchedZeroBubble.twoPerRank(
                                        PipelineShape.of(3, 3), options.withMemoryLimit(0.5)))
                .hasMessage(
                        "zb-2p needs room for at least 1 micro-batch, got a limit of 0.5; try 6");
        assertThatThrownBy(
                        () ->
                                SearchedZeroBubble.onePerRank(
                                        PipelineShape.of(3, 3),
                                        options.withCosts(List.of(OpCosts.unit(), OpCosts.unit()))))
                .hasMessage("3 ranks need 1 or 3 costs, got 2");
    }
}
