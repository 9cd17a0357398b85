package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.DriverGoneException;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankLocation;
import dev.penstock.actors.rank.RankLocations;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Who reaches whom must be known before anybody opens links. */
class RanksOnSeveralHostsTest {
    private static final PeerAddress A = new PeerAddress("a", "/dev/shm/a", "10.0.0.1:1");
    private static final PeerAddress B = new PeerAddress("b", "/dev/shm/b", "10.0.0.2:2");
    private static final PeerAddress C = new PeerAddress("c", "/dev/shm/c", "10.0.0.3:3");

    private final CoordinatedRun run = new CoordinatedRun(2, RecoveryPolicy.DEFAULT);

    @Test
    void noRankIsBornBeforeAllHaveANode() {
        run.announces(0, A);
        assertThat(run.births()).isEmpty();

        run.announces(1, B);

        assertThat(run.births())
                .hasSize(2)
                .allSatisfy(birth -> assertThat(locationsOf(birth)).isEqualTo(Map.of(0, A, 1, B)));
        assertThat(run.lastEffects().getFirst())
                .as("one wait for the disk, before anybody goes anywhere")
                .isInstanceOfSatisfying(
                        Effect.Journal.class, journal -> assertThat(journal.entries()).hasSize(2));
        assertThat(run.lastEffects().subList(1, 3)).hasOnlyElementsOfType(Effect.HostRank.class);
    }

    @Test
    void aRunThatIsStoppedBeforeAllHaveANodeWaitsForNobody() {
        run.announces(0, A);

        run.take(run.coordinator.onInterrupt(run.now));

        assertThat(run.outcome()).isNotNull();
    }

    @Test
    void anotherHostTakesTheDeadRanksPlaceAndAllLearnWhereItIs() {
        run.announces(0, A).announces(1, B).hosted(0).hosted(1).opens(0).opens(1);
        run.step();
        run.forgetTold();

        run.dies(1).prepared(0);

        assertThat(run.started()).containsExactly(Optional.of(1));
        assertThat(run.told(RankCommand.Resume.class)).isEmpty(); // to whom would it open links?

        run.announces(1, C);

        assertThat(run.told(RankCommand.Resume.class))
                .singleElement()
                .satisfies(
                        resume ->
                                assertThat(resume.links().changed())
                                        .containsExactly(locationOfRank1(C)));
        RankAssignment birth = run.births().getLast();
        assertThat(birth.rank()).isEqualTo(1);
        assertThat(birth.epoch()).isEqualTo(2);
        assertThat(locationsOf(birth)).isEqualTo(Map.of(0, A, 1, C));
        assertThat(run.started()).hasSize(1);
    }

    @Test
    void whenAllHostsDieNobodyIsBornBeforeAllHaveANodeAgain() {
        run.announces(0, A).announces(1, B).hosted(0).hosted(1).opens(0).opens(1);
        run.step();
        int before = run.births().size();

        run.dies(0).dies(1);
        run.announces(0, B);
        assertThat(run.births()).as("to whom would it open links?").hasSize(before);
        run.announces(1, C);

        assertThat(run.births().subList(before, run.births().size()))
                .hasSize(2)
                .allSatisfy(birth -> assertThat(locationsOf(birth)).isEqualTo(Map.of(0, B, 1, C)));
    }

    @Test
    void allWaitUntilTheDriversOfBothHostsAreReplaced() {
        run.announces(0, A).announces(1, B).hosted(0).hosted(1).opens(0).opens(1);
        run.step();
        driverDies(A);
        driverDies(B);
        run.prepared(0, 1);

        run.take(run.coordinator.onLinkRestarted("/dev/shm/a", "/dev/shm/a2", run.now));
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();
        run.take(run.coordinator.onLinkRestarted("/dev/shm/b", "/dev/shm/b2", run.now));

        assertThat(run.told(RankCommand.Resume.class))
                .extracting(resume -> resume.links().link())
                .containsExactly("/dev/shm/a2", "/dev/shm/b2");
    }

    @Test
    void aReplacementThatDiesAsWellIsWaitedForAgain() {
        run.announces(0, A).announces(1, B).hosted(0).hosted(1).opens(0).opens(1);
        run.step();
        driverDies(A);
        run.take(run.coordinator.onLinkRestarted("/dev/shm/a", "/dev/shm/a2", run.now));
        run.take(run.coordinator.onLinkDied("/dev/shm/a2", "killed", run.now)).prepared(0, 1);
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();

        run.take(run.coordinator.onLinkRestarted("/dev/shm/a2", "/dev/shm/a3", run.now));

        assertThat(run.told(RankCommand.Resume.class))
                .extracting(resume -> resume.links().link())
                .containsExactly("/dev/shm/a3", "");
    }

    @Test
    void nobodyWaitsForTheDriverOfAHostThatIsGone() {
        run.announces(0, A).announces(1, B).hosted(0).hosted(1).opens(0).opens(1);
        run.step();
        driverDies(B);
        run.dies(1).prepared(0);

        run.announces(1, C);

        assertThat(run.told(RankCommand.Resume.class))
                .singleElement()
                .satisfies(
                        resume ->
                                assertThat(resume.links().changed())
                                        .containsExactly(locationOfRank1(C)));
    }

    /**
     * Until the death of a node on another host is proved, a driver that died with it is missed.
     */
    @Test
    void theDeathOfADriversStarterCostsOneRecovery() {
        var four = new CoordinatedRun(4, RecoveryPolicy.DEFAULT);
        four.announces(0, A).announces(1, B).announces(2, B).announces(3, A);
        for (int rank = 0; rank < 4; rank++) {
            four.hosted(rank).opens(rank);
        }
        four.step();

        four.take(four.coordinator.onRankEvent(missesItsDriver(2), four.now));
        assertThat(four.lastEffects()).contains(new Effect.RestartLink(Set.of("/dev/shm/b")));
        four.prepared(0, 2, 3).silentBut(0, 2, 3);
        four.take(four.coordinator.onLinkRestarted("/dev/shm/b", "/dev/shm/b2", four.now));
        four.announces(1, C).hosted(1).resumed(0, 2, 3).opens(1);
        four.take(four.coordinator.onNodeDied("n101/101", false, "it left the cluster", four.now));

        assertThat(four.told(RankCommand.Resume.class))
                .extracting(resume -> resume.links().link())
                .containsExactly("", "/dev/shm/b2", "");
        assertThat(four.step().committed()).containsExactly(1L, 1L);
        assertThat(four.lastEpoch()).isEqualTo(2);
    }

    /** Its own host's system tells a death at once; whoever was starved sees the driver again. */
    @Test
    void theOnlyDriverOfARunIsNotReplacedBeforeItsDeathIsTold() {
        run.joins(0).joins(1).opens(0).opens(1).step();

        run.take(run.coordinator.onRankEvent(missesItsDriver(1), run.now)).prepared(0, 1);

        assertThat(run.told(RankCommand.Resume.class)).hasSize(2);
    }

    private static RankEvent missesItsDriver(int rank) {
        var gone = new DriverGoneException("it has ended", null);
        return new RankEvent.LinkLost(rank, 1, "rank %d: %s".formatted(rank, gone.getMessage()));
    }

    private static Map<Integer, PeerAddress> locationsOf(RankAssignment birth) {
        return RankLocations.NONE.with(birth.links().changed()).addresses();
    }

    private static RankLocation locationOfRank1(PeerAddress address) {
        return new RankLocation(1, 1, MirrorLayout.NOBODY, Optional.of(address));
    }

    private void driverDies(PeerAddress host) {
        run.take(run.coordinator.onLinkDied(host.driverDirectory(), "killed", run.now));
    }

    @Test
    void onOneMediaDriverNobodyWaitsAndNobodyNeedsAddresses() {
        run.joins(0);

        assertThat(run.births())
                .singleElement()
                .satisfies(birth -> assertThat(locationsOf(birth)).isEmpty());
    }
}
