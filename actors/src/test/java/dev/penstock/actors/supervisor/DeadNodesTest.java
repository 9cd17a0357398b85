package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.Timeouts;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What the coordinator does when a node of a cluster dies: with its ranks, or with the driver. */
class DeadNodesTest {
    private static final String OF_RANK_1 = "n101/101";
    private static final String LINE = "waits for 1 more node";

    private final CoordinatedRun run = new CoordinatedRun(4, RecoveryPolicy.DEFAULT);

    @Test
    void theRanksOfADeadNodeAreStartedElsewhere() {
        run.open().step();

        run.take(run.coordinator.onNodeDied(OF_RANK_1, false, "its connection closed", run.now));
        run.prepared(0, 2, 3);

        assertThat(run.started()).containsExactly(Optional.of(1));
        run.joins(1).resumed(0, 2, 3).opens(1);
        assertThat(run.recovery().replaced()).containsExactly(1);
    }

    @Test
    void aNodeOfNoRankOfTheRunMayDie() {
        run.open().step();

        run.take(run.coordinator.onNodeDied("other/7", false, "its connection closed", run.now));

        assertThat(run.lastEffects()).isEmpty();
    }

    @Test
    void aDriverThatDiedWithItsNodeIsReplacedBeforeAnyoneResumes() {
        run.open().step();

        run.take(run.coordinator.onNodeDied(OF_RANK_1, true, "its connection closed", run.now));
        assertThat(run.lastEffects()).contains(new Effect.RestartLink(Set.of("")));
        run.prepared(0, 2, 3);
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();
        run.take(run.coordinator.onLinkRestarted("", "/dev/shm/other", run.now));

        assertThat(run.told(RankCommand.Resume.class))
                .extracting(resume -> resume.links().link())
                .isEqualTo(List.of("/dev/shm/other", "/dev/shm/other", "/dev/shm/other"));
    }

    @Test
    void aNodeThatDiesBeforeItsRankIsOpenIsReplacedAtOnce() {
        run.joins(0).opens(0).joins(1).joins(2).opens(2);

        run.take(run.coordinator.onNodeDied(OF_RANK_1, false, "its connection closed", run.now));
        run.prepared(0, 2);

        assertThat(run.started())
                .as("the node of rank 3 has not come yet")
                .containsExactly(Optional.of(1), Optional.of(3));
        run.joins(3).joins(1).resumed(0, 2).opens(1).opens(3);
        assertThat(run.recovery().replaced()).contains(1);
        run.step();
        assertThat(run.committed()).containsExactly(1L);
    }

    @Test
    void aNodeThatTakesTheDriverAlongBeforeAllAreOpenIsNoEnd() {
        run.joins(0).opens(0).joins(2).opens(2);

        run.take(run.coordinator.onNodeDied("other/7", true, "its connection closed", run.now));
        assertThat(run.lastEffects()).contains(new Effect.RestartLink(Set.of("")));
        run.take(run.coordinator.onLinkRestarted("", "/dev/shm/other", run.now)).prepared(0, 2);
        run.joins(1).joins(3).resumed(0, 2).opens(1).opens(3).step();

        assertThat(run.committed()).containsExactly(1L);
    }

    @Test
    void whileRanksWaitForRoomTheyNeedNotOpen() {
        long start = Timeouts.DEFAULT.start().toNanos();
        run.joins(0).opens(0);

        run.take(run.coordinator.onNoRoom(LINE, run.now + start - 1));
        run.take(run.coordinator.onTick(run.now + start + 1));
        assertThat(run.outcome()).isNull();
        run.take(run.coordinator.onTick(run.now + 2 * start)).stopped(0);

        assertThat(run.outcome()).isInstanceOf(RunOutcome.Failed.class);
    }

    @Test
    void aRunWaitsForRoomWithinItsPatience() {
        long patience = RecoveryPolicy.DEFAULT.roomPatience().toNanos();
        run.open().step();
        run.take(run.coordinator.onNodeDied(OF_RANK_1, false, "its connection closed", run.now));
        run.prepared(0, 2, 3);

        run.take(run.coordinator.onNoRoom(LINE, run.now));
        run.take(run.coordinator.onNoRoom(LINE, run.now + patience / 2));
        assertThat(run.outcome()).isNull();
        run.take(run.coordinator.onNoRoom(LINE, run.now + patience)).stopped(0, 2, 3);

        assertThat(run.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains("recovery.room-patience = 600 s", LINE));
    }
}
