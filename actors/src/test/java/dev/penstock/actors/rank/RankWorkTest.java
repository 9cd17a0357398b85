package dev.penstock.actors.rank;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.mirror.HeldMirror;
import dev.penstock.actors.rank.RankEvent.HeldState;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.TestPlans;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class RankWorkTest {
    private static final int RANK = 4;

    /** Ranks 0, 2, 4, .. hold the same, and so do 1, 3, 5, .. */
    private static final RunPlan PLAN = TestPlans.replicas(2, 500);

    private static HeldMirror mirror(int rank, long step) {
        return new HeldMirror(rank, List.of(), step);
    }

    @Test
    void whatARankHoldsForAllItsReplicasIsSaidOnce() {
        List<HeldMirror> ofReplicas =
                IntStream.range(0, 500)
                        .map(replica -> 2 * replica)
                        .filter(rank -> rank != RANK)
                        .mapToObj(rank -> mirror(rank, 7))
                        .toList();

        assertThat(RankWork.states(RANK, PLAN, ofReplicas))
                .containsExactly(new HeldState(RANK, 7, -1));
    }

    @Test
    void aMirrorOfARankThatHoldsSomethingElseIsSaidByItsNumber() {
        assertThat(RankWork.states(RANK, PLAN, List.of(mirror(3, 6), mirror(0, 7))))
                .containsExactly(new HeldState(3, 6, -1), new HeldState(RANK, 7, -1));
    }
}
