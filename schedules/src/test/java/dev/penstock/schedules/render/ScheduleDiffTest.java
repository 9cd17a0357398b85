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

    @Test
    void orderSlicesAndSharedStagesAreComparedToo() {
        Schedule sliced =
                ScheduleText.parse(
                        """
                        ranks: 2
                        micro-batches: 1
                        slices: 2
                        shared: 0 1
                        rank 0: 0F0s0
                        rank 1:
                        """);
        Schedule whole = ScheduleText.parse("ranks: 2\nmicro-batches: 3\nrank 0: 0F0\nrank 1:\n");

        assertThat(ScheduleDiff.of(sliced, whole).shapes())
                .containsExactly(
                        "micro-batches: 1 and 3",
                        "slice lengths: [1, 1] and [1]",
                        "shared stages: [[0, 1]] and []");
        assertThat(ScheduleDiff.of(sliced, whole).isEmpty()).isFalse();
    }

    @Test
    void ranksThatOneAloneHasAreNotCompared() {
        Schedule longer =
                order("ranks: 3", "rank 0: 0F0 0F1 0B0 0B1", "rank 1: 1F0", "rank 2: 2F0");

        assertThat(ScheduleDiff.of(longer, ORDER).ranks())
                .extracting(ScheduleDiff.RankDiff::rank)
                .containsExactly(1);
    }

    @Test
    void threeOpsAreShownOnEachSideOfTheDifference() {
        String before = "0F0 0F1 0F2 0F3 ";
        Schedule first = oneRank(before + "0B0 0B1 0B2 0B3");
        Schedule second = oneRank(before + "0B1 0B0 0B2 0B3 0W0");

        ScheduleDiff.RankDiff rank = ScheduleDiff.of(first, second).ranks().getFirst();

        assertThat(rank.first()).isEqualTo("... 0F1 0F2 0F3 [0B0] 0B1 0B2 0B3");
        assertThat(rank.second()).isEqualTo("... 0F1 0F2 0F3 [0B1] 0B0 0B2 0B3 ...");
    }

    private static Schedule oneRank(String ops) {
        return ScheduleText.parse("ranks: 1\nmicro-batches: 4\nrank 0: " + ops + "\n");
    }
}
