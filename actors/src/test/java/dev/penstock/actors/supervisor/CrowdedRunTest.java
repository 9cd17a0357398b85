package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RunOutcome;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Lost ranks that no node comes for go to nodes that have others; the ranks are imagined. */
class CrowdedRunTest {
    private static final Duration WAIT = Duration.ofSeconds(10);

    /** A run of three stages on one machine, where nothing may be started again. */
    private static CoordinatedRun withoutRestarts() {
        return new CoordinatedRun(
                        3,
                        new RecoveryPolicy(
                                        true,
                                        0,
                                        Duration.ofMinutes(10),
                                        Duration.ofMinutes(10),
                                        RecoveryPolicy.NonFinite.HALT)
                                .rebalancingAfter(WAIT))
                .open();
    }

    /** Three stages on three nodes of a cluster, of which the second is lost. */
    private static CoordinatedRun inCluster() {
        var run = new CoordinatedRun(3, RecoveryPolicy.DEFAULT.rebalancingAfter(WAIT)).saveEvery(1);
        openOnHosts(run);
        run.step().saves().published(1);
        return run.dies(1).prepared(0, 2);
    }

    private static void openOnHosts(CoordinatedRun run) {
        for (int rank = 0; rank < run.ranks; rank++) {
            run.announces(rank, address(rank));
        }
        for (int rank = 0; rank < run.ranks; rank++) {
            run.hosted(rank).opens(rank);
        }
    }

    private static PeerAddress address(int number) {
        return new PeerAddress("host" + number, "/dev/shm/" + number, "10.0.0.1:" + number);
    }

    @Test
    void whenRestartsAreUsedUpARankGoesToItsNeighboursProcess() {
        CoordinatedRun run = withoutRestarts();

        run.dies(2).prepared(0, 1);

        assertThat(run.started()).isEmpty();
        assertThat(run.births().getLast().rank()).isEqualTo(2);
        assertThat(run.births().getLast().start()).isEqualTo(new StateSource.Fresh());
        run.resumed(0, 1).hosted(2).opens(2);
        assertThat(run.homes()).containsExactly(0, 1, 1);
        run.step();
        assertThat(run.committed()).containsExactly(1L);
    }

    @Test
    void theLastProcessTakesAllAndItsDeathEndsTheRun() {
        CoordinatedRun run = withoutRestarts();
        run.dies(2).prepared(0, 1).resumed(0, 1).hosted(2).opens(2);

        run.dies(0).prepared(1, 2).resumed(1, 2).hosted(0).opens(0);
        assertThat(run.homes()).containsExactly(0, 0, 0);
        run.step();
        run.dies(1);

        assertThat(run.committed()).containsExactly(1L);
        run.stopped(0, 1, 2);
        assertThat(run.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed -> assertThat(failed.reason()).contains("recovery.max-restarts"));
    }

    @Test
    void ranksSpreadOverTheProcessesThatAreLeft() {
        var run = new CoordinatedRun(4, RecoveryPolicy.DEFAULT.rebalancingAfter(WAIT));
        openOnHosts(run);

        run.dies(1).dies(2).prepared(0, 3);
        run.findsNoRoom().waits(WAIT).findsNoRoom();

        run.resumed(0, 3).hosted(1).hosted(2).opens(1).opens(2);
        assertThat(run.homes()).containsExactly(0, 0, 2, 2);
    }

    @Test
    void aRankWaitsForRoomBeforeItGoesToANodeThatHasAnother() {
        CoordinatedRun run = inCluster();
        run.findsNoRoom();

        run.waits(WAIT.minusSeconds(1)).findsNoRoom();
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();
        assertThat(run.started()).containsExactly(Optional.of(1));

        run.waits(Duration.ofSeconds(1)).findsNoRoom();
        assertThat(run.births().getLast().start()).isEqualTo(new StateSource.FromCheckpoint(1));
        run.resumed(0, 2).hosted(1).opens(1);
        assertThat(run.homes()).containsExactly(0, 0, 2);
        run.step();
        assertThat(run.committed()).containsExactly(1L, 2L);
    }

    @Test
    void aNodeThatComesInTimeIsTaken() {
        CoordinatedRun run = inCluster();
        run.findsNoRoom().waits(WAIT.minusSeconds(1));

        run.announces(1, address(1)).resumed(0, 2).hosted(1).opens(1);

        assertThat(run.homes()).containsExactly(0, 1, 2);
    }

    @Test
    void whereANodeHasNoRoomTheNextIsAsked() {
        CoordinatedRun run = inCluster().hasNoRoom(0);

        run.findsNoRoom().waits(WAIT).findsNoRoom();

        run.resumed(0, 2).hosted(1).opens(1);
        assertThat(run.homes()).containsExactly(0, 1, 1);
    }

    @Test
    void whereNoNodeHasRoomTheRunWaitsOn() {
        CoordinatedRun run = inCluster().hasNoRoom(0).hasNoRoom(2);

        run.findsNoRoom().waits(WAIT).findsNoRoom();
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();

        run.announces(1, address(1)).resumed(0, 2).hosted(1).opens(1);
        assertThat(run.homes()).isEqualTo(List.of(0, 1, 2));
    }

    @Test
    void whereRoomIsFreedLaterARankGoesThere() {
        CoordinatedRun run = inCluster().hasNoRoom(0).hasNoRoom(2);
        run.findsNoRoom().waits(WAIT).findsNoRoom();

        run.hasRoomAgain(2).findsNoRoom();

        run.resumed(0, 2).hosted(1).opens(1);
        assertThat(run.homes()).containsExactly(0, 1, 1);
    }
}
