package dev.penstock.runtime.data.rows;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class StepRowsTest {
    private static final int CONTEXT = 100;

    @Test
    void everyRowIsInOneMicroBatchThatHasRoomForIt() {
        var random = new Random(5);
        for (int replicas = 1; replicas <= 4; replicas++) {
            for (int round = 0; round < 50; round++) {
                int each = 1 + random.nextInt(4);
                int microBatches = replicas * (1 + random.nextInt(5));
                int[] lengths = random.ints((long) each * microBatches, 1, CONTEXT + 1).toArray();
                StepRows step =
                        StepRows.of(
                                lengths, microBatches, CONTEXT, apart(1 + round % 20, replicas));

                List<Integer> all = new ArrayList<>();
                for (int m = 0; m < microBatches; m++) {
                    int[] rows = step.rows().get(m);
                    int longest = Arrays.stream(rows).map(row -> lengths[row]).max().orElseThrow();
                    assertThat(rows).hasSize(each);
                    assertThat(step.tokens()[m])
                            .isBetween(longest, Math.min(CONTEXT, longest + round % 20));
                    Arrays.stream(rows).forEach(all::add);
                }
                assertThat(all)
                        .containsExactlyInAnyOrderElementsOf(
                                IntStream.range(0, lengths.length).boxed().toList());
            }
        }
    }

    /** No other way to group as many rows each needs fewer tokens. */
    @Test
    void groupsOfNeighboursHaveTheLeastPadding() {
        int[] lengths = {7, 90, 12, 8, 55, 13, 89, 50};
        StepRows step = StepRows.of(lengths, 4, CONTEXT, apart(1, 1));

        assertThat(step.tokens()).containsExactly(8, 55, 90, 13);
        assertThat(step.rows().getFirst()).containsExactly(0, 3);
        assertThat(step.rows().get(2)).containsExactly(6, 1);
    }

    @Test
    void replicasHaveAboutTheSameWork() {
        var random = new Random(9);
        int[] lengths =
                IntStream.range(0, 64)
                        .map(_ -> (int) Math.min(CONTEXT, Math.exp(3 + random.nextGaussian())))
                        .map(length -> Math.max(1, length))
                        .toArray();
        int[] tokens = StepRows.of(lengths, 32, CONTEXT, apart(1, 4)).tokens();

        List<Integer> sums =
                IntStream.range(0, 4)
                        .mapToObj(r -> Arrays.stream(tokens, 8 * r, 8 * r + 8).sum())
                        .toList();
        assertThat(sums)
                .allSatisfy(
                        sum ->
                                assertThat(sum)
                                        .isBetween(sums.getFirst() - 10, sums.getFirst() + 10));
    }

    @Test
    void paddedRowsKeepTheirOrder() {
        int[] lengths = {7, 90, 12, 8};
        StepRows step =
                StepRows.of(
                        lengths,
                        2,
                        CONTEXT,
                        new RowsApart(true, 1, 1, tokens -> Arrangement.hill(tokens.length)));

        assertThat(step.tokens()).containsExactly(CONTEXT, CONTEXT);
        assertThat(step.rows().get(1)).containsExactly(2, 3);
    }

    @Test
    void arrangementsAreNamedAfterTheirShape() {
        assertThat(Arrangement.rising(5)).containsExactly(0, 1, 2, 3, 4);
        assertThat(Arrangement.falling(5)).containsExactly(4, 3, 2, 1, 0);
        assertThat(Arrangement.hill(5)).containsExactly(0, 2, 4, 3, 1);
        assertThat(Arrangement.valley(5)).containsExactly(4, 2, 0, 1, 3);
    }

    private static RowsApart apart(int step, int replicas) {
        return new RowsApart(false, step, replicas, tokens -> Arrangement.hill(tokens.length));
    }
}
