package dev.penstock.schedules.generate.wired;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Wiring;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WiringsTest {
    /** Ranks 0 2 4 6 hold stage 0, ranks 1 3 5 7 stage 1. */
    private static final PipelineShape SHAPE = PipelineShape.of(2, 16).withPeers(4);

    private static final Wirings WIRINGS = Wirings.equal(SHAPE);

    private static Wiring of(Placement placement) {
        return placement.wiring().orElseThrow();
    }

    private static List<Integer> loads(Placement placement, int stage) {
        Wiring wiring = of(placement);
        return IntStream.range(0, wiring.peers())
                .mapToObj(peer -> wiring.microBatchesOf(peer, stage).size())
                .toList();
    }

    @Test
    void straightLeavesEveryReplicaItsOwnMicroBatches() {
        Wiring wiring = of(WIRINGS.straight());

        for (int stage = 0; stage < 2; stage++) {
            assertThat(wiring.microBatchesOf(0, stage)).containsExactly(0, 1, 2, 3);
            assertThat(wiring.microBatchesOf(3, stage)).containsExactly(12, 13, 14, 15);
        }
        assertThatThrownBy(() -> Wirings.equal(PipelineShape.of(2, 6).withPeers(4)).straight())
                .hasMessageContaining("4 replicas")
                .hasMessageContaining("got 6 together");
    }

    @Test
    void balancedLetsEqualPeersTakeTurnsEachInItsPipeline() {
        Wiring wiring = of(WIRINGS.balanced());

        for (int m = 0; m < 16; m++) {
            assertThat(wiring.peerOf().get(m)).containsExactly(m % 4, m % 4);
        }
    }

    @Test
    void balancedGivesAPeerOfAThirdOfTheSpeedAThirdOfTheWork() {
        var shape = PipelineShape.of(1, 12).withPeers(2);
        Placement placement = Wirings.equal(shape).withNanos(List.of(1L, 3L)).balanced();

        assertThat(of(placement).peerOf().stream().map(List::getFirst))
                .containsExactly(0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1);
    }

    /** What the heap does is the best that any division can do for one stage. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 5, 7, 8, 13})
    void noDivisionOfAStageIsDoneEarlierThanTheBalancedOne(int microBatches) {
        var shape = PipelineShape.of(1, microBatches).withPeers(3);
        List<Long> nanos = List.of(3L, 4L, 10L);
        Placement placement = Wirings.equal(shape).withNanos(nanos).balanced();

        long best = Long.MAX_VALUE;
        for (int a = 0; a <= microBatches; a++) {
            for (int b = 0; a + b <= microBatches; b++) {
                int c = microBatches - a - b;
                best = Math.min(best, Math.max(3L * a, Math.max(4L * b, 10L * c)));
            }
        }
        List<Integer> loads = loads(placement, 0);
        long done =
                IntStream.range(0, 3).mapToLong(p -> loads.get(p) * nanos.get(p)).max().orElse(0);

        assertThat(done).isEqualTo(best);
    }

    @Test
    void withoutARankItsMicroBatchesGoToItsPeersAndTheRestStays() {
        Placement before = WIRINGS.straight();
        Placement after = WIRINGS.without(before, 5);

        assertThat(of(after).absent()).containsExactly(5);
        assertThat(loads(after, 0)).containsExactly(4, 4, 4, 4);
        assertThat(loads(after, 1)).containsExactly(6, 5, 0, 5);
        for (int m = 0; m < 16; m++) {
            assertThat(of(after).peerOf(m, 0)).isEqualTo(of(before).peerOf(m, 0));
            if (of(before).peerOf(m, 1) != 2) {
                assertThat(of(after).peerOf(m, 1)).isEqualTo(of(before).peerOf(m, 1));
            }
        }
    }

    @Test
    void aFastPeerTakesMoreOfWhatADeadOneLeaves() {
        var shape = PipelineShape.of(1, 12).withPeers(3);
        Wirings wirings = Wirings.equal(shape).withNanos(List.of(2L, 4L, 4L));

        // 4 each; peer 0 is done with 4 + x after 2 (4 + x), peer 1 with 4 + y after 4 (4 + y)
        assertThat(loads(wirings.without(wirings.straight(), 2), 0)).containsExactly(8, 4, 0);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4, 5, 6, 7})
    void aRankThatIsBackHasWhatItHad(int rank) {
        Placement before = WIRINGS.straight();

        assertThat(WIRINGS.rejoined(WIRINGS.without(before, rank), rank)).isEqualTo(before);
    }

    @Test
    void severalMayBeGoneAndComeBackInAnotherOrder() {
        Placement gone = WIRINGS.without(WIRINGS.without(WIRINGS.straight(), 5), 1);
        Placement back = WIRINGS.rejoined(WIRINGS.rejoined(gone, 5), 1);

        assertThat(loads(gone, 1)).containsExactly(0, 8, 0, 8);
        assertThat(of(back).absent()).isEmpty();
        assertThat(loads(back, 1)).containsExactly(4, 4, 4, 4);
        assertThat(loads(back, 0)).containsExactly(4, 4, 4, 4);
    }

    @Test
    void whatCannotBeIsRefused() {
        Placement straight = WIRINGS.straight();
        var two = Wirings.equal(PipelineShape.of(2, 4).withPeers(2));
        Placement one = two.without(two.straight(), 1);

        assertThatThrownBy(() -> two.without(one, 3)).hasMessageContaining("nobody is left");
        assertThatThrownBy(() -> two.without(one, 1)).hasMessageContaining("absent already");
        assertThatThrownBy(() -> WIRINGS.rejoined(straight, 1)).hasMessageContaining("not absent");
        assertThatThrownBy(() -> WIRINGS.without(straight, 8)).hasMessageContaining("0 to 7");
        assertThatThrownBy(() -> WIRINGS.without(Placement.loop(2, 1), 1))
                .hasMessageContaining("one pipeline");
    }

    @Test
    void aSeedDrawsOneWiringAndSeedsDrawMany() {
        Set<Placement> drawn = new HashSet<>();
        for (long seed = 0; seed < 100; seed++) {
            assertThat(WIRINGS.random(seed)).isEqualTo(WIRINGS.random(seed));
            drawn.add(WIRINGS.random(seed));
        }

        assertThat(drawn).hasSize(100);
        // all peers have something to do in 100 wirings of 16 micro-batches
        assertThat(
                        drawn.stream()
                                .flatMap(placement -> loads(placement, 1).stream())
                                .mapToInt(load -> load)
                                .summaryStatistics()
                                .getAverage())
                .isEqualTo(4);
        assertThat(Collections.max(loads(WIRINGS.random(1), 0))).isLessThan(12);
    }
}
