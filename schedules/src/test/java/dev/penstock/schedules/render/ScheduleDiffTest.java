package dev.penstock.schedules.render;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import org.junit.jupiter.api.Test;

class ScheduleDiffTest {
    private static final Schedule ORDER =
            order("ranks: 2", "rank 0: 0F0 0F1 0B0 0B1", "rank 1: 1F0 1B0 1F1 1B1");

    private static Schedule order(String... lines) {
        return ScheduleText.parse("micro-batches: 2\n" + String.join("\n", lines) + "\n");
    }

    @Test
    void equalOrdersDoNotDiffer() {
        assertThat(ScheduleDiff.of(ORDER, ORDER).isEmpty()).isTrue();
    }

    @Test
    void theFirstDifferenceOfEachRankIsShown() {
        Schedule other = order("ranks: 2", "rank 0: 0F0 0F1 0B0 0B1", "rank 1: 1F0 1F1 1B0 1B1");

        ScheduleDiff diff = ScheduleDiff.of(ORDER, other);

        assertThat(diff.shapes()).isEmpty();
        assertThat(diff.ranks()).hasSize(1);
        ScheduleDiff.RankDiff rank = diff.ranks().getFirst();
        assertThat(rank.rank()).isEqualTo(1);
        assertThat(rank.position()).isEqualTo(1);
        assertThat(rank.first()).isEqualTo("1F0 [1B0] 1F1 1B1");
        assertThat(rank.second()).isEqualTo("1F0 [1F1] 1B0 1B1");
        assertThat(rank.onlyFirst()).isEmpty();
        assertThat(rank.onlySecond()).isEmpty();
    }

    @Test
    void opsOfOneAloneAreNamed() {
        Schedule other = order("ranks: 2", "rank 0: 0F0 0F1 0I0 0W0 0B1", "rank 1: 1F0 1B0 1F1");

        ScheduleDiff diff = ScheduleDiff.of(ORDER, other);

        assertThat(diff.ranks()).hasSize(2);
        assertThat(diff.ranks().get(0).onlyFirst()).containsExactly("0B0");
        assertThat(diff.ranks().get(0).onlySecond()).containsExactly("0I0", "0W0");
        assertThat(diff.ranks().get(1).second()).isEqualTo("1F0 1B0 1F1 [end]");
        assertThat(diff.ranks().get(1).onlyFirst()).containsExactly("1B1");
    }

    @Test
    void otherShapesAreSaid() {
        Schedule other = order("ranks: 1", "chunks: 2", "rank 0: 0F0 1F0 0F1 1F1 1B0 0B0 1B1 0B1");

        assertThat(ScheduleDiff.of(ORDER, other).shapes())
                .containsExactly(
                        "ranks: 2 and 1", "chunks: 1 and 2", "placement: [0, 1] and [0, 0]");
    }
}
