package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.EpochLinks;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankLocations;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What changed is told, and together with what a rank knows it is everything. */
class ToldLocationsTest {
    private static final int RANKS = 6;

    private RankTable ranks = new RankTable(TestPlans.chain(RANKS));
    private ToldLocations told = new ToldLocations(ranks, new Links(ranks));

    /** What each rank has put together from all that it was told. */
    private final RankLocations[] known = new RankLocations[RANKS];

    private int nodes;

    ToldLocationsTest() {
        Arrays.fill(known, RankLocations.NONE);
        IntStream.range(0, RANKS).forEach(this::moves);
    }

    @Test
    void whoIsBornIsToldEverythingAndWhoStaysWhatHasChanged() {
        enters(1, MirrorLayout.ring(RANKS));
        assertThat(linksOf(0).changed()).hasSize(RANKS);
        IntStream.range(0, RANKS).forEach(this::hears);

        moves(3);
        enters(2, MirrorLayout.ring(RANKS));

        assertThat(linksOf(0).changed())
                .singleElement()
                .satisfies(location -> assertThat(location.rank()).isEqualTo(3));
        assertThat(linksOf(3).changed()).hasSize(RANKS);
        assertThat(told.linksAtBirth(0, List.of()).changed())
                .as("it is born again where it was heard to live")
                .hasSize(RANKS);
        hears(0);
        enters(3, MirrorLayout.ring(RANKS));
        assertThat(linksOf(0).changed()).isEmpty();
        assertThat(linksOf(1).changed()).as("its order of epoch 2 was lost").hasSize(1);
    }

    @Test
    void allAreToldTheSameInAnEpochWhateverHappensMeanwhile() {
        enters(1, MirrorLayout.none(RANKS));
        EpochLinks before = linksOf(0);

        moves(5);
        told.settle(MirrorLayout.ring(RANKS));

        assertThat(linksOf(0)).isEqualTo(before);
        IntStream.range(0, RANKS).forEach(this::hears);
        enters(2, MirrorLayout.none(RANKS));
        assertThat(linksOf(0).changed()).hasSize(1);
    }

    @Test
    void whoeverTakesTheRunUpTellsOnlyWhatHasChanged() {
        enters(1, MirrorLayout.ring(RANKS));
        IntStream.range(0, RANKS).forEach(this::hears);

        isTakenUp();
        moves(3);
        enters(2, MirrorLayout.ring(RANKS));

        assertThat(linksOf(0).changed()).hasSize(1);
        assertThat(linksOf(3).changed()).hasSize(RANKS);
    }

    @Test
    void anOrderThatComesTwiceLeadsToTheSame() {
        enters(1, MirrorLayout.ring(RANKS));
        IntStream.range(0, RANKS).forEach(this::hears);
        moves(3);
        enters(2, MirrorLayout.ring(RANKS));
        EpochLinks order = linksOf(0);
        hears(0);

        known[0] = known[0].with(order.changed());
        answers(0); // to an order that came late: it is past its answer

        assertThat(known[0].byRank()).isEqualTo(linksOf(3).changed());
        assertThat(linksOf(0).changed()).isEmpty();
    }

    /**
     * Against a table of all locations: moves at random, orders and answers that are lost, and
     * supervisors that take the run up.
     */
    @Test
    void everyRankKnowsAllPlacesWhateverWasLost() {
        var random = new SplittableRandom(7);
        for (int epoch = 1; epoch <= 2_000; epoch++) {
            if (random.nextInt(10) == 0) {
                isTakenUp();
            }
            for (int rank = 0; rank < RANKS; rank++) {
                if (random.nextInt(5) == 0) {
                    moves(rank);
                }
            }
            var mirrors =
                    MirrorLayout.across(
                            IntStream.range(0, RANKS).mapToObj(_ -> random.nextInt(3)).toList());
            enters(epoch, mirrors);
            for (int rank = 0; rank < RANKS; rank++) {
                if (random.nextInt(3) > 0) {
                    hears(rank);
                    assertThat(known[rank].addresses().values())
                            .containsExactlyElementsOf(ranks.addresses().values());
                    assertThat(known[rank].homes()).isEqualTo(ranks.homes());
                    assertThat(known[rank].mirrors(List.of())).isEqualTo(mirrors);
                }
            }
        }
    }

    private void hears(int rank) {
        known[rank] = known[rank].with(linksOf(rank).changed());
    }

    private EpochLinks linksOf(int rank) {
        return told.linksOf(rank, List.of());
    }

    /** In a new epoch, of which all ranks say what they hold at its beginning. */
    private void enters(int epoch, MirrorLayout mirrors) {
        ranks.enter(epoch);
        IntStream.range(0, RANKS).forEach(this::answers);
        told.settle(mirrors);
    }

    private void answers(int rank) {
        var state = new RankEvent.HeldState(rank, 0, -1);
        var digests = known[rank].digests();
        ranks.prepared(new RankEvent.Prepared(rank, ranks.epoch(), state, List.of(), digests, ""));
    }

    private void isTakenUp() {
        RankTable before = ranks;
        ranks = new RankTable(TestPlans.chain(RANKS));
        told = new ToldLocations(ranks, new Links(ranks));
        IntStream.range(0, RANKS)
                .forEach(rank -> ranks.placed(rank, before.node(rank).orElseThrow(), 0));
    }

    private void moves(int rank) {
        int number = ++nodes;
        NodeInfo node =
                TestNodes.of(
                        "n" + number,
                        number,
                        rank,
                        new PeerAddress("host" + number, "/dev/shm/" + number, "10.0.0.1:1"));
        ranks.vacate(rank);
        ranks.placed(rank, node, 0);
        known[rank] = RankLocations.NONE;
    }
}
