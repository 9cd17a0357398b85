package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.SharedMemoryFullException;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunOutcome;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What the coordinator does while ranks and drivers find no room in shared memory. */
class FullSharedMemoryTest {
    private static final String FULL =
            String.valueOf(new SharedMemoryFullException("free are 0 bytes", null).getMessage());

    private final CoordinatedRun run = new CoordinatedRun(4, RecoveryPolicy.DEFAULT);

    @Test
    void aMinuteOfFullSharedMemoryIsSurvivedWithTheUsualBudget() {
        run.open().step().dies(2).prepared(0, 1, 3).joins(2);
        long full = run.now;

        while (run.now - full < Duration.ofMinutes(1).toNanos()) {
            int epoch = run.lastEpoch();
            opensNoLink(0, epoch);
            opensNoLink(1, epoch); // the same try: it came too late
            fails(2, epoch);
            run.prepared(0, 1, 3);
            waitsForNextTry();
            assertThat(run.outcome()).as("after %d s", seconds(full)).isNull();
        }
        run.resumed(0, 1, 3).hosted(2).opens(2).step();

        assertThat(run.committed()).containsExactly(1L, 1L);
        assertThat(run.stalls())
                .anySatisfy(line -> assertThat(line).contains("tries again in 40 s"));
    }

    @Test
    void sharedMemoryThatStaysFullEndsTheRun() {
        run.open().step();

        for (int tries = 0; tries < 6; tries++) {
            opensNoLink(1, run.lastEpoch());
            run.prepared(0, 1, 2, 3).waits(Duration.ofMinutes(1));
        }
        run.stopped(0, 1, 2, 3);

        assertThat(run.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains("recovery.max-restarts = 5", FULL));
    }

    @Test
    void aDriverThatFindsNoRoomIsStartedAgainAfterAPause() {
        run.open().step();
        run.take(run.coordinator.onLinkDied("", "killed", run.now));
        assertThat(run.lastEffects()).contains(new Effect.RestartLink(Set.of("")));
        run.prepared(0, 1, 2, 3);

        run.take(run.coordinator.onLinkDied("", FULL, run.now));

        assertThat(run.lastEffects()).doesNotContain(new Effect.RestartLink(Set.of("")));
        run.prepared(0, 1, 2, 3).waits(Duration.ofMillis(4_500));
        assertThat(run.lastEffects()).doesNotContain(new Effect.RestartLink(Set.of("")));
        run.waits(Duration.ofMillis(500));
        assertThat(run.lastEffects()).containsOnlyOnce(new Effect.RestartLink(Set.of("")));
        run.waits(Duration.ofMillis(500));
        assertThat(run.lastEffects()).isEmpty();
    }

    @Test
    void aDeathDuringThePauseCountsAndEndsNoPause() {
        run.open().step();
        opensNoLink(1, run.lastEpoch());

        run.dies(3).prepared(0, 1, 2).joins(3);

        assertThat(run.started()).containsExactly(Optional.of(3));
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();
        run.waits(Duration.ofSeconds(5));
        assertThat(run.told(RankCommand.Resume.class)).hasSize(3);
    }

    /** Whoever wants the run to end waits for no pause, neither for this one nor for the next. */
    @Test
    void anInterruptEndsAllPauses() {
        run.open().step();
        opensNoLink(1, run.lastEpoch());
        run.prepared(0, 1, 2, 3);
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();

        run.take(run.coordinator.onInterrupt(run.now));
        assertThat(run.told(RankCommand.Resume.class)).hasSize(4);
        opensNoLink(1, run.lastEpoch());
        run.prepared(0, 1, 2, 3);
        assertThat(run.told(RankCommand.Resume.class)).hasSize(8);

        run.resumed(0, 1, 2, 3).stopped(0, 1, 2, 3);
        assertThat(run.outcome()).isEqualTo(new RunOutcome.Interrupted(1));
    }

    @Test
    void anInterruptHasADriverStartedThatHadToWait() {
        run.open().step();
        run.take(run.coordinator.onLinkDied("", FULL, run.now));
        assertThat(run.lastEffects()).doesNotContain(new Effect.RestartLink(Set.of("")));

        run.take(run.coordinator.onInterrupt(run.now));

        assertThat(run.lastEffects()).containsOnlyOnce(new Effect.RestartLink(Set.of("")));
        run.waits(Duration.ofMillis(500));
        assertThat(run.lastEffects()).isEmpty();
    }

    private void opensNoLink(int rank, int epoch) {
        run.take(run.coordinator.onRankEvent(new RankEvent.LinkLost(rank, epoch, FULL), run.now));
    }

    private void fails(int rank, int epoch) {
        run.take(
                run.coordinator.onRankEvent(
                        new RankEvent.Failed(rank, epoch, FULL, false), run.now));
    }

    private void waitsForNextTry() {
        run.forgetTold();
        while (run.told(RankCommand.Resume.class).isEmpty() && run.outcome() == null) {
            run.waits(Duration.ofMillis(500));
        }
    }

    private int seconds(long since) {
        return (int) ((run.now - since) / 1_000_000_000L);
    }
}
