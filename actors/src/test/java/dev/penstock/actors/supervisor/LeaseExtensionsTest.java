package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.spi.VitalSigns;
import dev.penstock.actors.spi.VitalSigns.State;
import dev.penstock.actors.spi.VitalSigns.ThreadSigns;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Rank 2 of four says nothing for long; what is seen of its process decides. */
class LeaseExtensionsTest {
    private static final int SILENT = 2;
    private static final long LEASE = 3_000_000_000L;
    private static final int TICKS_PER_LEASE = 15;

    /** What becomes of a process between two looks. */
    private enum Life {
        /** Its timers go on; but for them it has nothing to do. */
        HANGS,
        STARVES,
        /** Every second moment it is given a processor, and waits for most of the time. */
        IS_SHORT_OF_PROCESSORS,
        IS_STOPPED,
        IS_A_ZOMBIE,
        IS_GONE
    }

    private CoordinatedRun run = new CoordinatedRun(4, RecoveryPolicy.DEFAULT);
    private final Map<Integer, Life> lives = new HashMap<>();
    private final Map<Integer, ThreadSigns> threads = new HashMap<>();

    @BeforeEach
    void open() {
        run.withVitals(this::look).open().step();
        lives.put(CoordinatedRun.SUPERVISOR, Life.HANGS);
    }

    @Test
    void whoStarvesIsNotTakenForDead() {
        lives.put(SILENT, Life.STARVES);
        pass(2.5);
        run.lease(SILENT, 1);
        pass(0.5);

        assertNobodyRecovers();
    }

    @Test
    void whoIsShortOfProcessorsIsNotTakenForDead() {
        lives.put(SILENT, Life.IS_SHORT_OF_PROCESSORS);
        pass(2.5);

        assertNobodyRecovers();
    }

    /** It was heard last when it opened, and starved while the others did. */
    @Test
    void whoStarvedBeforeTheRunBeganIsNotTakenForDead() {
        run = new CoordinatedRun(4, RecoveryPolicy.DEFAULT).withVitals(this::look);
        run.joins(0).joins(1).joins(2).joins(3).opens(0).opens(1).opens(SILENT);
        lives.put(SILENT, Life.STARVES);
        pass(1.5);
        run.opens(3);
        pass(0.3);

        assertNobodyRecovers();
    }

    @Test
    void whoHangsIsGivenUpAfterItsLease() {
        lives.put(SILENT, Life.HANGS);
        pass(0.95);
        assertNobodyRecovers();
        pass(0.2);

        assertGivenUp(
                "silent for 3.1 s",
                "its process lives, and waited for a processor for no more than 0.0 of 1.8 s");
    }

    @Test
    void whoIsStoppedIsGivenUpAfterItsLease() {
        lives.put(SILENT, Life.IS_STOPPED);
        pass(1.15);

        assertGivenUp("silent for 3.1 s", "its process is stopped");
    }

    @Test
    void whoIsAZombieIsGivenUpAfterItsLease() {
        lives.put(SILENT, Life.IS_A_ZOMBIE);
        pass(1.15);

        assertGivenUp("silent for 3.1 s", "its process has ended");
    }

    @Test
    void ofAProcessThatIsGoneOrElsewhereNothingIsSaid() {
        lives.put(SILENT, Life.IS_GONE);
        pass(1.15);

        assertGivenUp("silent for 3.1 s (lease 3.0 s); last seen");
        assertThat(cause()).doesNotContain("process");
    }

    @Test
    void whoIsStoppedWhileItsLeaseIsExtendedIsGivenUpAtOnce() {
        lives.put(SILENT, Life.STARVES);
        pass(1.5);
        lives.put(SILENT, Life.IS_STOPPED);
        pass(0.15);

        assertGivenUp("silent for 5.1 s", "its process is stopped");
    }

    @Test
    void whoStarvedAndThenHangsIsGivenUpAtTheEndOfItsSecondLease() {
        lives.put(SILENT, Life.STARVES);
        pass(1.1);
        lives.put(SILENT, Life.HANGS);
        pass(0.8);
        assertNobodyRecovers();
        pass(0.25);

        assertGivenUp("silent for 6.1 s", "no more than 0.0 of");
    }

    @Test
    void whoStarvesForFourLeasesIsGivenUp() {
        lives.put(SILENT, Life.STARVES);
        pass(3.8);
        assertNobodyRecovers();
        pass(0.2);

        assertGivenUp("silent for 12.0 s", "its lease was extended 3 times, which is the most");
    }

    @Test
    void whoSpokeIsJudgedAnewWhenItIsSilentAgain() {
        lives.put(SILENT, Life.STARVES);
        pass(3.5);
        run.lease(SILENT, 1);
        pass(3.5);
        assertNobodyRecovers();

        run.lease(SILENT, 1);
        lives.put(SILENT, Life.HANGS);
        pass(1.15);
        assertGivenUp("silent for 3.1 s");
    }

    @Test
    void aSupervisorThatStarvesIsNoWitness() {
        lives.put(SILENT, Life.HANGS);
        lives.put(CoordinatedRun.SUPERVISOR, Life.IS_SHORT_OF_PROCESSORS);
        pass(1.5);
        assertNobodyRecovers();

        lives.put(SILENT, Life.IS_STOPPED);
        pass(0.15);
        assertGivenUp("its process is stopped");
    }

    @Test
    void nobodyIsLookedAtWhileAllSpeak() {
        run.withVitals(
                rank -> {
                    throw new AssertionError("looked at " + rank);
                });
        for (int tick = 0; tick < 3 * TICKS_PER_LEASE; tick++) {
            run.lease(SILENT, 1);
            tick();
        }
    }

    @Test
    void inARecoveryTooWhoStarvesIsWaitedFor() {
        run.dies(0).prepared(1, 3);
        lives.put(SILENT, Life.STARVES);
        pass(2.5);
        assertThat(run.told(RankCommand.Fence.class)).isEmpty();
        assertThat(run.started()).containsExactly(Optional.of(0));

        lives.put(SILENT, Life.IS_STOPPED);
        pass(0.15);
        assertThat(run.started()).as("two of four are no majority").hasSize(1);
        assertThat(run.stalls().getLast()).contains("parked", "rank 2");
    }

    // ---- time passes ----------------------------------------------------------------------------

    private void pass(double leases) {
        for (long tick = 0; tick < Math.round(leases * TICKS_PER_LEASE); tick++) {
            tick();
        }
    }

    private void tick() {
        run.now += LEASE / TICKS_PER_LEASE;
        IntStream.range(0, run.ranks)
                .filter(rank -> rank != SILENT)
                .forEach(rank -> run.lease(rank, 1));
        run.take(run.coordinator.onTick(run.now));
    }

    private Optional<VitalSigns> look(int rank) {
        Life life = lives.getOrDefault(rank, Life.HANGS);
        var before = threads.getOrDefault(rank, new ThreadSigns(1, false, 0, 0, 0));
        long span = LEASE / TICKS_PER_LEASE;
        ThreadSigns now =
                switch (life) {
                    case STARVES ->
                            new ThreadSigns(
                                    1,
                                    true,
                                    before.ranNanos(),
                                    before.waitedNanos(),
                                    before.turns());
                    case IS_SHORT_OF_PROCESSORS ->
                            new ThreadSigns(
                                    1,
                                    before.turns() % 2 == 0,
                                    before.ranNanos() + span / 10,
                                    before.waitedNanos() + span / 2,
                                    before.turns() + 1);
                    default ->
                            new ThreadSigns(
                                    1,
                                    false,
                                    before.ranNanos() + span / 100,
                                    before.waitedNanos(),
                                    before.turns() + 2);
                };
        threads.put(rank, now);
        State state =
                switch (life) {
                    case IS_STOPPED -> State.STOPPED;
                    case IS_A_ZOMBIE -> State.ENDED;
                    default -> State.ALIVE;
                };
        return life == Life.IS_GONE
                ? Optional.empty()
                : Optional.of(new VitalSigns(rank, state, List.of(now)));
    }

    // ---- what came of it ------------------------------------------------------------------------

    private void assertNobodyRecovers() {
        assertThat(run.told(RankCommand.Prepare.class)).isEmpty();
    }

    private void assertGivenUp(String... words) {
        assertThat(run.told(RankCommand.Prepare.class)).isNotEmpty();
        run.prepared(0, 1, 3);
        assertThat(run.told(RankCommand.Fence.class)).hasSize(1);
        assertThat(cause()).contains("rank 2").contains(words);
    }

    private String cause() {
        return run.recoveringCause();
    }
}
