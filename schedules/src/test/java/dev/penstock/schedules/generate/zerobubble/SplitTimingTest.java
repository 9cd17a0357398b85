package dev.penstock.schedules.generate.zerobubble;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.NaiveStarts;
import dev.penstock.schedules.generate.base.OpCosts;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class SplitTimingTest {
    /** The passes of all micro-batches in any order; many of these block. */
    private static SplitOrder shuffled(Random random, int ranks, int microBatches) {
        var order = new ArrayList<List<SplitPass>>();
        for (int rank = 0; rank < ranks; rank++) {
            var passes = new ArrayList<SplitPass>();
            for (int m = 0; m < microBatches; m++) {
                passes.addAll(List.of(SplitPass.values()));
            }
            if (random.nextInt(4) > 0) {
                Collections.shuffle(passes, random);
                // half of them begin as every order does
                if (random.nextBoolean()) {
                    passes.sort(null);
                }
            }
            order.add(passes);
        }
        return new SplitOrder(order);
    }

    private static OpCosts costs(Random random) {
        return new OpCosts(
                random.nextInt(9), random.nextInt(9), random.nextInt(9), random.nextInt(9));
    }

    @Test
    void timesAreThoseOfTheNaiveRun() {
        Random random = new Random(11);
        int stuck = 0;
        for (int round = 0; round < 600; round++) {
            int ranks = 1 + random.nextInt(4);
            int microBatches = 1 + random.nextInt(3);
            List<OpCosts> costs = IntStream.range(0, ranks).mapToObj(_ -> costs(random)).toList();
            var problem = new SplitProblem(microBatches, microBatches, costs);
            SplitOrder order = shuffled(random, ranks, microBatches);

            SplitTiming timing = SplitTiming.of(order, problem);

            NaiveStarts naive = NaiveStarts.of(order, problem);
            if (naive.isStuck()) {
                stuck++;
                assertThat(timing)
                        .isEqualTo(
                                new SplitTiming(
                                        SplitTiming.NEVER, SplitTiming.NEVER, SplitTiming.NEVER));
            } else {
                int last = 3 * microBatches - 1;
                assertThat(timing)
                        .as("%s of %s", order, problem)
                        .isEqualTo(
                                new SplitTiming(
                                        IntStream.range(0, ranks)
                                                .mapToLong(rank -> naive.end(rank, last))
                                                .max()
                                                .orElseThrow(),
                                        IntStream.range(0, ranks)
                                                .mapToLong(naive::span)
                                                .max()
                                                .orElseThrow(),
                                        IntStream.range(0, ranks).mapToLong(naive::span).sum()));
            }
        }
        assertThat(stuck).isBetween(60, 540);
    }

    @Test
    void theBarrierCountsBeforeTheLongestSpanAndThatBeforeAllSpans() {
        assertThat(
                        List.of(
                                new SplitTiming(1, 9, 9),
                                new SplitTiming(2, 1, 9),
                                new SplitTiming(2, 2, 1),
                                new SplitTiming(2, 2, 2)))
                .isSorted();
        assertThat(new SplitTiming(2, 1, 9)).isGreaterThan(new SplitTiming(1, 9, 9));
        assertThat(new SplitTiming(2, 2, 1)).isGreaterThan(new SplitTiming(2, 1, 9));
        assertThat(new SplitTiming(2, 2, 2)).isGreaterThan(new SplitTiming(2, 2, 1));
        assertThat(new SplitTiming(2, 2, 2)).isEqualByComparingTo(new SplitTiming(2, 2, 2));
    }
}
