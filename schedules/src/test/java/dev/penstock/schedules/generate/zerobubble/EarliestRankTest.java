package dev.penstock.schedules.generate.zerobubble;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class EarliestRankTest {
    @Test
    void isTheLowestOfTheEarliest() {
        for (int ranks = 1; ranks <= 9; ranks++) {
            var turns = new EarliestRank(ranks);
            assertThat(turns.time()).isEqualTo(Long.MAX_VALUE);
            long[] times = new long[ranks];
            for (int rank = 0; rank < ranks; rank++) {
                times[rank] = 7L * (rank + 3) % 5;
                turns.set(rank, times[rank]);
            }
            for (int round = 0; round < 40; round++) {
                int expected = 0;
                for (int rank = 1; rank < ranks; rank++) {
                    expected = times[rank] < times[expected] ? rank : expected;
                }

                assertThat(turns.rank()).isEqualTo(expected);
                assertThat(turns.time()).isEqualTo(times[expected]);

                times[expected] += 1 + round % 4;
                turns.set(expected, times[expected]);
            }
        }
    }
}
