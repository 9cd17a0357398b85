package dev.penstock.actors.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RankGridTest {
    private final RankGrid grid = new RankGrid(2, 2, 3, 2);

    @Test
    void everyRankHasAPlaceOfItsOwn() {
        assertThat(grid.ranks()).isEqualTo(24);
        for (int rank = 0; rank < 24; rank++) {
            assertThat(grid.rankAt(grid.placeOf(rank))).isEqualTo(rank);
        }
    }

    @Test
    void shardsOfAStageAreNeighbours() {
        assertThat(grid.placeOf(3)).isEqualTo(new RankPlace(1, 1, 0, 0));
        assertThat(grid.tensorGroup(3)).isEqualTo(List.of(2, 3));
        assertThat(grid.contextGroup(3)).isEqualTo(List.of(3, 7, 11));
        assertThat(grid.replicaGroup(3)).isEqualTo(List.of(3, 7, 11, 15, 19, 23));
        assertThat(grid.sibling(3, 0)).isEqualTo(1);
    }

    @Test
    void groupsOfAllMembersAreTheSame() {
        for (int member : grid.replicaGroup(14)) {
            assertThat(grid.replicaGroup(member)).isEqualTo(grid.replicaGroup(14));
        }
    }

    @ParameterizedTest
    @CsvSource({"1;2, 1, 1", "2;1, 1, 2", "4;1;2, 2, 1", "2;4;4;1, 1, 3"})
    void eachRankGetsATensorOnceWhereStagesHaveDifferentNumbersOfShards(
            String shards, int context, int data) {
        List<Integer> counts = Stream.of(shards.split(";")).map(Integer::valueOf).toList();
        var uneven = new RankGrid(counts.size(), Collections.max(counts), context, data, counts);
        int ranks = counts.stream().mapToInt(n -> n).sum() * context * data;
        assertThat(uneven.ranks()).isEqualTo(ranks);
        for (int rank = 0; rank < ranks; rank++) {
            assertThat(uneven.rankAt(uneven.placeOf(rank))).isEqualTo(rank);
            assertThat(uneven.tensorGroup(rank))
                    .hasSize(counts.get(uneven.placeOf(rank).pipeline()))
                    .contains(rank);
        }
        for (int from = 0; from < counts.size(); from++) {
            for (int to = 0; to < counts.size(); to++) {
                List<Integer> received = new ArrayList<>();
                for (int rank = 0; rank < ranks; rank++) {
                    if (uneven.placeOf(rank).pipeline() == from) {
                        for (int receiver : uneven.receivers(rank, to)) {
                            received.add(receiver);
                            assertThat(uneven.sibling(receiver, from)).isEqualTo(rank);
                            assertThat(uneven.placeOf(receiver).data())
                                    .isEqualTo(uneven.placeOf(rank).data());
                            assertThat(uneven.placeOf(receiver).context())
                                    .isEqualTo(uneven.placeOf(rank).context());
                        }
                    }
                }
                int program = to;
                assertThat(received)
                        .containsExactlyInAnyOrderElementsOf(
                                IntStream.range(0, ranks)
                                        .filter(r -> uneven.placeOf(r).pipeline() == program)
                                        .boxed()
                                        .toList());
            }
        }
    }

    @Test
    void numbersOfShardsAreMultiplesOfEachOther() {
        assertThat(RankGrid.areMultiples(List.of(4, 1, 2))).isTrue();
        assertThat(RankGrid.areMultiples(List.of(6, 4))).isFalse();
        assertThatThrownBy(() -> new RankGrid(2, 3, 1, 1, List.of(2, 3)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("[2, 3]");
    }
}
