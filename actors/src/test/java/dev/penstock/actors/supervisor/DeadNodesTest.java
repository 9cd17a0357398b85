package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.shard.RankOrder;
import dev.penstock.actors.spi.RunOutcome;
import java.util.List;
import java.util.Optional;
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
        assertThat(run.lastEffects()).contains(new Effect.RestartLink());
        run.prepared(0, 2, 3);
        assertThat(run.told(RankOrder.Resume.class)).isEmpty();
        run.take(run.coordinator.onLinkRestarted("", "/dev/shm/other", run.now));

        assertThat(run.told(RankOrder.Resume.class))
                .extracting(RankOrder.Resume::link)
                .isEqualTo(List.of("/dev/shm/other", "/dev/shm/other", "/dev/shm/other"));
    }

    @Test
    void aRunWaitsForRoomAsLongAsTheWindowIs() {
        long window = RecoveryPolicy.DEFAULT.window().toNanos();
        run.open().step();
        run.take(run.coordinator.onNodeDied(OF_RANK_1, false, "its connection closed", run.now));
        run.prepared(0, 2, 3);

        run.take(run.coordinator.onNoRoom(LINE, run.now));
        run.take(run.coordinator.onNoRoom(LINE, run.now + window / 2));
        assertThat(run.outcome()).isNull();
        run.take(run.coordinator.onNoRoom(LINE, run.now + window)).stopped(0, 2, 3);

        assertThat(run.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains("recovery.window = 600 s", LINE));
    }
}
