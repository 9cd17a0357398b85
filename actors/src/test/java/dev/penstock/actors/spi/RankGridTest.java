package dev.penstock.actors.spi;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

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
}
