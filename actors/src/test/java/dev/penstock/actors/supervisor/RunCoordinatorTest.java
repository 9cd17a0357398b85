package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.Timeouts;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;

/** Every decision of a recovery, in virtual time. */
class RunCoordinatorTest {
    private static final Duration STALL_LIMIT = Timeouts.DEFAULT.stallLimit();

    private static final Duration LEASE = Duration.ofSeconds(3);

    private final CoordinatedRun run = new CoordinatedRun(4, RecoveryPolicy.DEFAULT);

    @Test
    void aStepIsJournalledBeforeAnyRankHearsOfItsCommit() {
        run.open().passes();

        List<Effect> effects = run.lastEffects();
        assertThat(effects.getFirst())
                .isEqualTo(new Effect.Journal(new JournalRecord.Committed(1, 1, 1.0, 3, 0)));
        assertThat(effects.subList(1, effects.size()))
                .hasSize(4)
                .allSatisfy(
                        effect ->
                                assertThat(((Effect.TellRank) effect).order())
                                        .isEqualTo(new RankCommand.Commit(1, 1, 1.0)));
    }

    @Test
    void whereARankGoesIsJournalledBeforeItGoesThere() {
        run.joins(0).joins(1);
        NodeInfo node = TestNodes.of("new", 99, 2);

        run.take(run.coordinator.onNode(node, run.now));

        assertThat(run.lastEffects().getFirst())
                .isEqualTo(new Effect.Journal(new JournalRecord.Placed(2, node.process())));
        assertThat(run.lastEffects().get(1)).isInstanceOf(Effect.HostRank.class);
    }

    @Test
    void aDeathBeforeTheFirstCheckpointSendsEveryoneBackToTheStart() {
        run.open().step().step().dies(2).prepared(0, 1, 3);

        assertThat(run.started()).containsExactly(Optional.of(2));
        assertThat(run.told(RankCommand.Resume.class))
                .hasSize(3)
                .allSatisfy(order -> assertThat(order.start()).isEqualTo(new StateSource.Fresh()));

        run.joins(2).resumed(0, 1, 3).opens(2);

        assertThat(run.recovery().restart()).isEqualTo(RecoveryReport.Restart.CHECKPOINT);
        assertThat(run.recovery().stepsLost()).isEqualTo(2);
        assertThat(run.passUnderWay().step()).isEqualTo(1);
        assertThat(run.passUnderWay().epoch()).isEqualTo(2);
    }

    @Test
    void aDeadRanksProcessStartsWhileTheOthersPrepare() {
        run.open().step().dies(2);
        assertThat(run.started()).containsExactly(Optional.of(2));

        run.take(run.coordinator.onNode(TestNodes.of("new", 99, 2), run.now));
        assertThat(run.births()).as("nobody resumes yet").hasSize(4);
        run.prepared(0, 1, 3);

        assertThat(run.births()).hasSize(5);
        assertThat(run.births().getLast().rank()).isEqualTo(2);
        assertThat(run.started()).hasSize(1);
    }

    @Test
    void theListenerHearsWhoTakesPartAndHowOldTheLeasesAre() {
        run.withLongLeases().open();
        assertThat(run.members())
                .extracting(RunMember::pid)
                .containsExactly(100L, 101L, 102L, 103L);

        run.step().now += Duration.ofSeconds(3).toNanos();
        run.lease(1, 1).take(run.coordinator.onTick(run.now));
        assertThat(run.members())
                .extracting(member -> member.leaseMillis() / 100)
                .containsExactly(30L, 0L, 30L, 30L);

        run.dies(2).take(run.coordinator.onTick(run.now));
        assertThat(run.members()).extracting(RunMember::pid).containsExactly(100L, 101L, 103L);

        run.prepared(0, 1, 3).joins(2).take(run.coordinator.onTick(run.now));
        assertThat(run.members())
                .extracting(RunMember::pid)
                .containsExactly(100L, 101L, 104L, 103L);
    }

    @Test
    void aDeathAfterACheckpointSendsEveryoneBackThere() {
        run.saveEvery(2).open().step().step().saves().published(2).step().dies(1).prepared(0, 2, 3);

        assertThat(run.told(RankCommand.Resume.class))
                .allSatisfy(
                        order ->
                                assertThat(order.start())
                                        .isEqualTo(new StateSource.FromCheckpoint(2)));
        run.joins(1);
        assertThat(run.births().getLast().start()).isEqualTo(new StateSource.FromCheckpoint(2));

        run.resumed(0, 2, 3).opens(1);

        assertThat(run.recovery().fromStep()).isEqualTo(2);
        assertThat(run.recovery().stepsLost()).isEqualTo(1);
        assertThat(run.passUnderWay().step()).isEqualTo(3);
    }

    @Test
    void aDamagedCheckpointIsNamedAndTheOneBeforeIsTaken() {
        run.saveEvery(1).open().step().saves().published(1).step().saves().published(2);
        run.step().dies(1).prepared(0, 2, 3).joins(1);
        run.findsDamaged(2, 2);

        assertThat(run.lastEffects()).contains(new Effect.FindOlder(2));
        run.prepared(0, 1, 2, 3);
        assertThat(run.lastEffects()).noneMatch(Effect.TellRank.class::isInstance);
        run.take(run.coordinator.onOlder(OptionalLong.of(1), run.now));

        assertThat(run.lastEffects())
                .contains(new Effect.Journal(new JournalRecord.Published(1)))
                .contains(
                        new Effect.Journal(
                                new JournalRecord.RolledBack(run.coordinator.epoch(), 1)));
        run.resumed(0, 1, 2, 3);
        assertThat(run.recovery().fromStep()).isEqualTo(1);
        assertThat(run.recovery().stepsLost()).isEqualTo(2);
        assertThat(run.passUnderWay().step()).isEqualTo(2);
    }

    @Test
    void whereNoOlderCheckpointIsThereTheRunStartsFromItsBeginning() {
        run.saveEvery(2).open().step().step().saves().published(2).dies(1).prepared(0, 2, 3);
        run.joins(1);
        run.findsDamaged(0, 2);
        run.preparedAt(0, -1, -1).prepared(1, 2, 3);
        run.take(run.coordinator.onOlder(OptionalLong.empty(), run.now));

        run.resumed(0, 1, 2, 3);

        assertThat(run.recovery().fromStep()).isZero();
        assertThat(run.passUnderWay().step()).isEqualTo(1);
    }

    /** As in one process that got no processor for long: nobody died. */
    @Test
    void aBrokenLinkIsMendedWhereADeathWouldEndTheRun() {
        var policy = RecoveryPolicy.DEFAULT;
        var alone =
                new CoordinatedRun(
                        4,
                        new RecoveryPolicy(
                                false,
                                policy.maxRestarts(),
                                policy.window(),
                                policy.roomPatience(),
                                policy.nonFinite()));

        alone.open().step().linkLost(1).prepared(0, 1, 2, 3).resumed(0, 1, 2, 3);

        assertThat(alone.recovery().stepsLost()).isZero();
        assertThat(alone.passUnderWay().step()).isEqualTo(2);
    }

    /** As after a connection that was reset: all live, and all wait. */
    @Test
    void anOrderThatWasLostIsGivenAgainToThoseWhoHaveNotAnswered() {
        run.open().computed(0, 2, 3).forgetTold();

        run.waits(STALL_LIMIT.dividedBy(2).plusSeconds(2));

        assertThat(run.told(RankCommand.class)).containsExactly(run.passUnderWay());
        assertThat(run.toldRanks()).containsExactly(1);
    }

    @Test
    void whenNothingMovesForTheStallLimitAllAreAskedAgainInAnotherEpoch() {
        run.open().step().waits(STALL_LIMIT.plusMillis(1));
        assertThat(run.outcome()).as("what became of it").isNull();
        assertThat(run.told(RankCommand.Prepare.class)).isNotEmpty();

        run.prepared(0, 1, 2, 3).resumed(0, 1, 2, 3);

        assertThat(run.recovery().stepsLost()).isZero();
        assertThat(run.passUnderWay().step()).isEqualTo(2);
    }

    @Test
    void aRankThatRenewsItsLeaseAndDoesNotPrepareIsLeftBehind() {
        run.open().step().linkLost(2).prepared(0, 2, 3).waits(STALL_LIMIT.plusSeconds(1));

        assertThat(run.told(RankCommand.Fence.class)).hasSize(1);
        assertThat(run.started()).contains(Optional.of(1));
    }

    @Test
    void aSupervisorThatMeetsAHigherEpochHasBeenReplacedAndWritesNothingMore() {
        run.open().step().refuses(2, 7);

        assertThat(run.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed -> assertThat(failed.reason()).contains("another supervisor", "7"));
        assertThat(run.lastEffects()).noneMatch(Effect.Journal.class::isInstance);
        assertThat(run.lastEffects()).noneMatch(Effect.TellRank.class::isInstance);
    }

    @Test
    void theDecisionWaitsForACheckpointThatIsBeingPublished() {
        run.saveEvery(2).open().step().step().saves().dies(1).prepared(0, 2, 3);
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();

        run.published(2);

        assertThat(run.told(RankCommand.Resume.class))
                .hasSize(3)
                .allSatisfy(
                        order ->
                                assertThat(order.start())
                                        .isEqualTo(new StateSource.FromCheckpoint(2)));
    }

    @Test
    void aBrokenLinkLosesNothingAndTheUncommittedStepIsDoneAgain() {
        run.open().step().linkLost(2).prepared(0, 1, 2, 3);
        assertThat(run.told(RankCommand.Resume.class))
                .allSatisfy(order -> assertThat(order.start()).isEqualTo(new StateSource.Kept()));

        run.resumed(0, 1, 2, 3);

        assertThat(run.recovery().restart()).isEqualTo(RecoveryReport.Restart.MEMORY);
        assertThat(run.recovery().stepsLost()).isZero();
        assertThat(run.passUnderWay().step()).isEqualTo(2);
    }

    /**
     * As where shared memory is full for some seconds: the run does not spend all it bears at once.
     */
    @Test
    void aRecoveryThatFailsAgainAndAgainIsGivenTimeBeforeItIsTriedAnew() {
        run.open().step();
        for (int time = 0; time < 3; time++) {
            run.linkLost(2).prepared(0, 1, 2, 3);
            assertThat(run.told(RankCommand.Resume.class)).hasSize(4);
            run.forgetTold();
        }

        run.linkLost(2).prepared(0, 1, 2, 3);

        assertThat(run.told(RankCommand.Resume.class)).isEmpty();
        run.waits(Duration.ofMillis(500));
        assertThat(run.told(RankCommand.Resume.class)).hasSize(4);
    }

    @Test
    void aSupervisorThatIsAlwaysLateStillNoticesASilentRank() {
        run.open().step();

        for (int tick = 0; tick < 4; tick++) {
            run.now += Duration.ofMillis(1800).toNanos(); // a disk that takes long for every step
            run.lease(0, 1).lease(1, 1).lease(3, 1);
            run.take(run.coordinator.onTick(run.now));
        }

        assertThat(run.recoveringCause()).contains("rank 2").contains("has been silent");
    }

    @Test
    void aSupervisorThatWasSuspendedGivesUpNobodyWhoseRenewalsWait() {
        run.open().step();

        for (int suspension = 0; suspension < 3; suspension++) {
            run.now += Duration.ofSeconds(10).toNanos();
            run.take(run.coordinator.onTick(run.now));
            run.lease(0, 1).lease(1, 1).lease(2, 1).lease(3, 1);
        }

        assertThat(run.recoveringCause()).isEmpty();
    }

    @Test
    void aDeadDriverIsReplacedBeforeAnyoneResumes() {
        run.open().step();
        run.take(run.coordinator.onLinkDied("", "killed", run.now));
        assertThat(run.lastEffects()).contains(new Effect.RestartLink(Set.of("")));
        run.prepared(0, 1, 2, 3);
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();

        run.take(run.coordinator.onLinkRestarted("", "/dev/shm/other", run.now));

        assertThat(run.told(RankCommand.Resume.class))
                .hasSize(4)
                .allSatisfy(order -> assertThat(order.links().link()).isEqualTo("/dev/shm/other"));
    }

    @Test
    void aJournalledCommitThatNotAllAnsweredIsToldAgainInTheNewEpoch() {
        run.open().passes().stepDone(0).linkLost(3);
        run.preparedAt(0, 1, -1).preparedAt(1, 0, 1).preparedAt(2, 0, 1).preparedAt(3, 0, 1);

        run.resumed(0, 1, 2, 3);

        assertThat(run.told(RankCommand.Commit.class))
                .contains(new RankCommand.Commit(2, 1, 1.0))
                .filteredOn(commit -> commit.epoch() == 2)
                .hasSize(4);
        run.stepDone(0).stepDone(1).stepDone(2).stepDone(3);
        assertThat(run.committed()).containsExactly(1L);
    }

    @Test
    void aMirrorThatReachesTheCommitSavesAllSteps() {
        run.open().step().step().dies(2);
        run.prepared(0, 1).preparedWithMirror(3, 2, 2);

        assertThat(run.births().getLast().start()).isEqualTo(new StateSource.FromMirror(3, 2));
        run.hosted(2).resumed(0, 1, 3).opens(2);

        assertThat(run.recovery().restart()).isEqualTo(RecoveryReport.Restart.MIRROR);
        assertThat(run.recovery().stepsLost()).isZero();
        assertThat(run.passUnderWay().step()).isEqualTo(3);
    }

    @Test
    void aSilentRankIsFencedWhenAMajorityIsHere() {
        run.open().step().silentBut(0, 1, 3).prepared(0, 1, 3);

        assertThat(run.told(RankCommand.Fence.class)).hasSize(1);
        assertThat(run.started()).containsExactly(Optional.of(2));
        run.forgetTold();
        run.lease(2, 1); // the zombie wakes: nobody listens
        assertThat(run.lastEffects()).isEmpty();
    }

    @Test
    void withoutAMajorityTheRunParksUntilTheSilentOnesAreBack() {
        run.open().step().silentBut(0, 1).prepared(0, 1);
        assertThat(run.told(RankCommand.Fence.class)).isEmpty();
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();
        assertThat(run.stalls().getLast()).contains("parked", "2 of 4", "rank 2", "rank 3");

        run.lease(2, 1).lease(3, 1);
        assertThat(run.told(RankCommand.Prepare.class)).hasSize(4);
        run.prepared(2, 3).resumed(0, 1, 2, 3);

        assertThat(run.recovery().stepsLost()).isZero();
        assertThat(run.passUnderWay().step()).isEqualTo(2);
    }

    @Test
    void aSecondDeathStartsTheRecoveryOverInAHigherEpoch() {
        run.open().step().dies(1).prepared(0, 2).dies(3);
        assertThat(run.told(RankCommand.Prepare.class).getLast().epoch()).isEqualTo(3);

        run.prepared(0, 2).joins(1).joins(3).resumed(0, 2).opens(1).opens(3);

        assertThat(run.recovery().replaced()).containsExactly(1, 3);
        assertThat(run.recovery().epoch()).isEqualTo(3);
        assertThat(run.passUnderWay().step()).isEqualTo(1);
    }

    @Test
    void answersOfAnEarlierEpochCountForNothing() {
        run.open().step().dies(1);
        run.preparedIn(1, 0).preparedIn(1, 2).preparedIn(1, 3);

        assertThat(run.told(RankCommand.Resume.class)).isEmpty();
    }

    @Test
    void tooManyDeathsEndTheRunAndSayAllOfThem() {
        var strict =
                new RecoveryPolicy(
                        true,
                        1,
                        Duration.ofMinutes(1),
                        Duration.ZERO,
                        RecoveryPolicy.NonFinite.HALT);
        var short_ = new CoordinatedRun(4, strict);
        short_.open().dies(1).prepared(0, 2, 3).joins(1).resumed(0, 2, 3).opens(1);
        short_.dies(2).stopped(0, 1, 3);

        assertThat(short_.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed -> assertThat(failed.reason()).contains("rank 1", "rank 2"));
    }

    @Test
    void deathsFarApartAreBorneForEver() {
        var strict =
                new RecoveryPolicy(
                        true,
                        1,
                        Duration.ofMinutes(1),
                        Duration.ZERO,
                        RecoveryPolicy.NonFinite.HALT);
        var patient = new CoordinatedRun(2, strict);
        patient.open();
        for (int death = 0; death < 5; death++) {
            patient.dies(1).prepared(0).joins(1).resumed(0).opens(1).step();
            patient.now += Duration.ofMinutes(2).toNanos();
        }
        assertThat(patient.outcome()).isNull();
    }

    @Test
    void aRunWithoutRecoveryEndsWithItsFirstDeath() {
        var plain = new CoordinatedRun(3, RecoveryPolicy.NONE);
        plain.open().step().dies(1).stopped(0, 2);

        assertThat(plain.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed -> {
                            assertThat(failed.step()).isEqualTo(1);
                            assertThat(failed.reason()).contains("rank 1", "died");
                        });
    }

    @Test
    void aSpareTakesThePlaceAndIsReplaced() {
        run.open().step();
        run.take(run.coordinator.onNode(TestNodes.spare("spare", 99), 0));
        run.dies(1).prepared(0, 2, 3);
        assertThat(run.started()).isEmpty();

        run.hosted(1).resumed(0, 2, 3).opens(1);

        assertThat(run.started()).containsExactly(Optional.empty());
    }

    @Test
    void ranksThatDieTogetherAreOneRecovery() {
        run.open().step();
        for (int time = 0; time < RecoveryPolicy.DEFAULT.maxRestarts(); time++) {
            run.dies(1).dies(2).prepared(0, 3).joins(1).joins(2).resumed(0, 3).opens(1).opens(2);

            assertThat(run.outcome()).as("outcome after %d times", time).isNull();
            assertThat(run.recovery().replaced()).containsExactly(1, 2);
            run.step();
        }

        run.dies(1).stopped(0, 2, 3);

        assertThat(run.outcome()).isInstanceOf(RunOutcome.Failed.class);
    }

    /** Else a process that dies whenever it starts would be started for ever. */
    @Test
    void aRankThatDiesAgainInItsRecoveryCountsAgain() {
        run.open().step().dies(2).dies(1);
        for (int time = 1; time < RecoveryPolicy.DEFAULT.maxRestarts(); time++) {
            run.prepared(0, 3).joins(1).dies(1);
            assertThat(run.outcome()).as("outcome after %d times", time).isNull();
        }
        run.prepared(0, 3).joins(1).dies(1).stopped(0, 3);

        assertThat(run.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed -> assertThat(failed.reason()).contains("max-restarts = 5"));
    }

    @Test
    void ranksThatDoNotOpenNameTheKeyOfTheirLimitAndWhatPassed() {
        run.now += Duration.ofSeconds(200).toNanos();
        run.take(run.coordinator.onTick(run.now));

        assertThat(run.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains("within timeouts.start = 60 s (200 s have passed")
                                        .contains("try timeouts.start = 400 s"));
    }

    @Test
    void aSpareThatDiesIsReplacedUnlessItDoesSoAgainAndAgain() {
        run.open().step();

        for (long pid = 900; pid < 906; pid++) {
            run.take(run.coordinator.onNode(TestNodes.spare("spare", pid), run.now));
            run.take(
                    run.coordinator.onProcessDied(pid, Optional.empty(), "out of memory", run.now));
        }

        assertThat(run.started()).hasSize(RecoveryPolicy.DEFAULT.maxRestarts());
    }

    @Test
    void aStepThatIsNotFiniteIsLeftOutIfThePolicySaysSo() {
        var skipping =
                new CoordinatedRun(
                        2,
                        new RecoveryPolicy(true, 3, LEASE, LEASE, RecoveryPolicy.NonFinite.SKIP));
        skipping.open().step().notFinite(1, 2).prepared(0, 1).resumed(0, 1);

        assertThat(skipping.passUnderWay().step()).isEqualTo(3);
        assertThat(skipping.committed()).containsExactly(1L);
    }

    /** In one process nothing goes on after a death, and a step is left out all the same. */
    @Test
    void leavingOutAStepNeedsNoLeaveToGoOnAfterDeaths() {
        var skipping =
                new CoordinatedRun(
                        2,
                        new RecoveryPolicy(false, 3, LEASE, LEASE, RecoveryPolicy.NonFinite.SKIP));
        skipping.open().step().notFinite(1, 2).prepared(0, 1).resumed(0, 1).step();

        assertThat(skipping.committed()).containsExactly(1L, 3L);
        assertThat(skipping.recovery().restart()).isEqualTo(RecoveryReport.Restart.SKIPPED);
        assertThat(skipping.recovery().fromStep()).isEqualTo(2);
    }

    @Test
    void onlySoManyStepsInARowAreLeftOut() {
        var skipping =
                new CoordinatedRun(
                        2,
                        new RecoveryPolicy(true, 2, LEASE, LEASE, RecoveryPolicy.NonFinite.SKIP));
        skipping.open().step();
        for (int step = 2; step <= 3; step++) {
            skipping.notFinite(1, step).prepared(0, 1).resumed(0, 1);
            skipping.now += LEASE.toNanos(); // out of the window, so that only the row counts
        }
        skipping.notFinite(1, 4).stopped(0, 1);

        assertThat(skipping.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed -> assertThat(failed.reason()).contains("since step 1"));
    }

    @Test
    void goingBackForTheSameStepTwiceIsHopeless() {
        var goingBack =
                new CoordinatedRun(
                        2,
                        new RecoveryPolicy(
                                true, 9, LEASE, LEASE, RecoveryPolicy.NonFinite.ROLLBACK));
        goingBack.open().step().notFinite(1, 2).prepared(0, 1).resumed(0, 1).step();
        assertThat(goingBack.committed()).as("from the beginning again").containsExactly(1L, 1L);

        goingBack.notFinite(1, 2).stopped(0, 1);

        assertThat(goingBack.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed -> assertThat(failed.reason()).contains("again, after"));
    }

    @Test
    void whoStandsStillWithinItsLeaseIsNamed() {
        run.withLongLeases().open();
        for (int rank = 0; rank < run.ranks; rank++) {
            run.lease(rank, 1);
        }
        for (int second = 0; second < 4; second++) {
            run.now += 1_000_000_000;
            run.take(run.coordinator.onTick(run.now));
        }
        assertThat(run.stalls()).isEmpty();

        run.now += 2_000_000_000;
        run.take(run.coordinator.onTick(run.now));

        assertThat(run.stalls())
                .singleElement(InstanceOfAssertFactories.STRING)
                .contains("nothing has moved for 6.", "rank 1: ");
    }

    /** What they told before they were parked is no measure of how long they stand still now. */
    @Test
    void theTimeInWhichARunWasParkedIsNoStall() {
        run.withLongLeases().open().step();
        for (int rank = 0; rank < run.ranks; rank++) {
            run.lease(rank, 1);
        }
        run.linkLost(1).prepared(0, 2, 3);
        run.now += Duration.ofSeconds(70).toNanos();
        run.prepared(1).resumed(0, 1, 2, 3).take(run.coordinator.onTick(run.now));

        assertThat(run.stalls()).isEmpty();
        assertThat(run.outcome()).isNull();

        run.now += Duration.ofSeconds(6).toNanos();
        run.take(run.coordinator.onTick(run.now));
        assertThat(run.stalls())
                .singleElement(InstanceOfAssertFactories.STRING)
                .contains("nothing has moved for 6.0 s", "rank 1: ");
    }

    @Test
    void aRecoveryThatWaitsSaysForWhom() {
        run.withLongLeases().open().step().linkLost(1).prepared(0, 2, 3);
        run.now += 6_000_000_000L;
        run.take(run.coordinator.onTick(run.now));

        assertThat(run.stalls())
                .singleElement(InstanceOfAssertFactories.STRING)
                .contains("recovering in epoch 2: has waited for rank 1 (node", ") for 6.0 s")
                .doesNotContain("rank 0", "rank 2", "rank 3");
    }

    @Test
    void aRecoveryInWhichTheMajorityDoesNotPrepareEndsTheRun() {
        run.withLongLeases().open().step().linkLost(1).prepared(0, 2);
        run.now += Duration.ofHours(1).toNanos();
        run.lease(0, 2).lease(1, 2).lease(2, 2).lease(3, 2);
        run.take(run.coordinator.onTick(run.now)).stopped(0, 1, 2, 3);

        assertThat(run.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains("waits for more than", "rank 1 (node")
                                        .contains("rank 3 (node")
                                        .doesNotContain("rank 0", "rank 2"));
    }

    @Test
    void aRecoveryInWhichARankDoesNotComeBackIsTriedAgainAsOftenAsRestartsAreAllowed() {
        run.withLongLeases().open().step().linkLost(1);
        for (int tries = 0; tries < RecoveryPolicy.DEFAULT.maxRestarts(); tries++) {
            assertThat(run.outcome()).as("outcome after %d tries", tries).isNull();
            int epoch = run.lastEpoch();
            run.prepared(0, 1, 2, 3).resumed(0, 1, 3);
            run.now += Duration.ofSeconds(61).toNanos();
            run.lease(0, epoch).lease(1, epoch).lease(2, epoch).lease(3, epoch);
            run.take(run.coordinator.onTick(run.now));
        }
        run.stopped(0, 1, 2, 3);

        assertThat(run.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains("did not come back within 60 s: rank 2 (node")
                                        .doesNotContain("rank 0", "rank 1", "rank 3"));
    }

    @Test
    void aStepThatIsNotFiniteEndsTheRunByDefault() {
        run.open().step().notFinite(1, 2).stopped(0, 1, 2, 3);

        assertThat(run.outcome()).isInstanceOf(RunOutcome.Failed.class);
    }

    @Test
    void anInterruptDuringARecoveryLosesNoStep() {
        run.saveEvery(100).open().step().step().linkLost(1);

        run.take(run.coordinator.onInterrupt(run.now));
        assertThat(run.told(RankCommand.Stop.class)).isEmpty();
        run.prepared(0, 1, 2, 3).resumed(0, 1, 2, 3).saves().published(2).stopped(0, 1, 2, 3);

        assertThat(run.outcome()).isEqualTo(new RunOutcome.Interrupted(2));
    }

    @Test
    void anInterruptEndsARecoveryThatHasNothingToSave() {
        run.saveEvery(2).open().step().step().saves().published(2).dies(1);
        run.take(run.coordinator.onInterrupt(run.now));

        run.prepared(0, 2, 3).take(run.coordinator.onTick(run.now));

        assertThat(run.told(RankCommand.Stop.class)).isNotEmpty();
    }

    @Test
    void anInterruptEndsAParkedRun() {
        run.open().step().silentBut(0, 1).prepared(0, 1);

        run.take(run.coordinator.onInterrupt(run.now));

        assertThat(run.told(RankCommand.Stop.class)).isNotEmpty();
    }
}
