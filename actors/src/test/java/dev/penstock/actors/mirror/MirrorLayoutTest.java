package dev.penstock.actors.mirror;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.RunPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class MirrorLayoutTest {
    @Test
    void inARingEveryRankKeepsThePreviousOnes() {
        var ring = MirrorLayout.ring(4);

        assertThat(ring.holders()).containsExactly(1, 2, 3, 0);
        assertThat(ring.heldBy(0)).containsExactly(3);
        assertThat(ring.heldBy(2)).containsExactly(1);
    }

    @Test
    void aSingleRankHasNobody() {
        assertThat(MirrorLayout.ring(1).holderOf(0)).isEqualTo(MirrorLayout.NOBODY);
        assertThat(MirrorLayout.across(List.of("a", "a")).holders()).containsOnly(-1);
    }

    @Test
    void ranksOfOneProcessAreMirroredInAnother() {
        var layout = MirrorLayout.across(List.of("a", "b", "b", "c"));

        assertThat(layout.holders()).containsExactly(1, 3, 3, 0);
        assertThat(layout.heldBy(3)).containsExactly(1, 2);
    }

    /** Every placement of five ranks on up to three processes. */
    @Test
    void noMirrorEverSharesItsRanksProcess() {
        for (int code = 0; code < 243; code++) {
            int digits = code;
            List<Integer> places =
                    IntStream.of(1, 3, 9, 27, 81).mapToObj(unit -> digits / unit % 3).toList();

            var layout = MirrorLayout.across(places);

            boolean alone = places.stream().distinct().count() == 1;
            for (int rank = 0; rank < 5; rank++) {
                int holder = layout.holderOf(rank);
                if (alone) {
                    assertThat(holder).isEqualTo(MirrorLayout.NOBODY);
                } else {
                    assertThat(places.get(holder)).isNotEqualTo(places.get(rank));
                    assertThat(layout.heldBy(holder)).contains(rank);
                }
            }
        }
    }

    @Test
    void whoHasACopyInAnotherProcessNeedsNoMirror() {
        RunPlan plan = RankMirrorsTest.wholeReplicas(2, 2);
        int copy = plan.copiesOf(0).getFirst();
        int other = 3 - copy; // neither of the two

        assertThat(MirrorLayout.atFirst(plan, List.of("a", "b", "c", "d")).holders())
                .containsOnly(MirrorLayout.NOBODY);
        assertThat(MirrorLayout.atFirst(plan, List.of("a", "a", "a", "a")).holders())
                .containsOnly(MirrorLayout.NOBODY);

        List<String> places = new ArrayList<>(List.of("a", "b", "c", "d"));
        places.set(0, places.get(copy));
        MirrorLayout afterADeath = MirrorLayout.across(plan, places);

        assertThat(afterADeath.holders().get(0)).isNotIn(MirrorLayout.NOBODY, copy);
        assertThat(afterADeath.holders().get(copy)).isNotIn(MirrorLayout.NOBODY, 0);
        assertThat(afterADeath.holders().get(other)).isEqualTo(MirrorLayout.NOBODY);
        assertThat(afterADeath.holders().get(3)).isEqualTo(MirrorLayout.NOBODY);
    }

    @Test
    void nobodyHoldsItsOwnMirror() {
        assertThatThrownBy(() -> new MirrorLayout(List.of(1, 1), List.of()))
                .hasMessageContaining("mirror of rank 1")
                .hasMessageContaining("got 1");
    }
}
