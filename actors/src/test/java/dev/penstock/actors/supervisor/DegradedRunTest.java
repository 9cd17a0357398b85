package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RecoveryReport.Restart;
import dev.penstock.actors.spi.RunOutcome;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/**
 * A run of three replicas of two stages goes on without ranks that died; the ranks are imagined.
 * Replica r is ranks 2r and 2r + 1, and has micro-batches 2r and 2r + 1.
 */
class DegradedRunTest {
    private final CoordinatedRun run = CoordinatedRun.degraded(3).open();

    @Test
    void theLivingGoOnAtOnceWithWhatTheyHold() {
        run.step();

        run.dies(3);
        assertThat(run.told(RankCommand.Prepare.class)).hasSize(5);
        run.prepared(0, 1, 2, 4, 5);

        assertThat(run.told(RankCommand.Resume.class))
                .hasSize(5)
                .allSatisfy(
                        order -> {
                            assertThat(order.start()).isEqualTo(new StateSource.Kept());
                            assertThat(order.links().revision().settings()).containsExactly("3");
                        });
        run.resumed(0, 1, 2, 4, 5);
        assertThat(run.passUnderWay().step()).isEqualTo(2);
        assertThat(run.recovery().restart()).isEqualTo(Restart.MEMORY);
        assertThat(run.recovery().replaced()).containsExactly(3);
        run.step().step();
        assertThat(run.committed()).containsExactly(1L, 2L, 3L);
    }

    @Test
    void thePlanWithoutTheDeadIsJournalledBeforeAnyRankFollowsIt() {
        run.dies(3).prepared(0, 1, 2, 4, 5);

        assertThat(run.journal())
                .last()
                .isInstanceOfSatisfying(
                        JournalRecord.Revised.class,
                        revised -> assertThat(revised.revision().number()).isEqualTo(1));
    }

    @Test
    void aProcessForTheDeadIsStartedMeanwhileAndTheRankIsBackTwoStepsLater() {
        run.step();
        run.dies(3).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5);
        assertThat(run.started()).containsExactly(Optional.of(3));

        run.step();
        run.announces(3);
        run.step();
        assertThat(run.told(RankCommand.Save.class)).hasSize(5);
        run.forgetTold();
        run.saves().published(3);
        run.prepared(0, 1, 2, 4, 5);

        assertThat(run.told(RankCommand.Resume.class))
                .hasSize(5)
                .allSatisfy(order -> assertThat(order.start()).isEqualTo(new StateSource.Kept()));
        assertThat(run.births().getLast().rank()).isEqualTo(3);
        assertThat(run.births().getLast().start()).isEqualTo(new StateSource.FromCheckpoint(3));
        run.resumed(0, 1, 2, 4, 5).hosted(3).opens(3);
        assertThat(run.passUnderWay().step()).isEqualTo(4);
        assertThat(run.followed().absent()).isEmpty();
        run.step();
        assertThat(run.committed()).containsExactly(1L, 2L, 3L, 4L);
    }

    @Test
    void aSecondDeathIsBorneAsWell() {
        run.dies(3).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5);
        run.dies(4).prepared(0, 1, 2, 5).resumed(0, 1, 2, 5);

        run.step();

        assertThat(run.followed().absent()).containsExactly(3, 4);
        assertThat(run.followed().revision().settings()).containsExactly("3", "4");
        assertThat(run.committed()).containsExactly(1L);
    }

    @Test
    void aDeathBeforeTheLivingHaveAnsweredIsOfTheSamePlan() {
        run.dies(3).prepared(0, 1).dies(4).prepared(0, 1, 2, 5).resumed(0, 1, 2, 5);

        assertThat(run.followed().revision().number()).isEqualTo(1);
        assertThat(run.followed().absent()).containsExactly(3, 4);
    }

    @Test
    void whoHoldsAStageAloneIsWaitedFor() {
        run.dies(1).prepared(0, 2, 3, 4, 5).resumed(0, 2, 3, 4, 5);
        run.dies(3).prepared(0, 2, 4, 5).resumed(0, 2, 4, 5);

        run.plansAreMade = false;
        run.dies(5);
        assertThat(run.plansAsked).isEmpty();
        run.prepared(0, 2, 4);
        assertThat(run.started()).contains(Optional.of(5));
        run.joins(5);

        assertThat(run.told(RankCommand.Resume.class).getLast().start())
                .isEqualTo(new StateSource.Fresh());
        assertThat(run.births().getLast().rank()).isEqualTo(5);
        run.resumed(0, 2, 4).opens(5);
        assertThat(run.passUnderWay().step()).isEqualTo(1);
        assertThat(run.followed().absent()).containsExactly(1, 3);
    }

    /** Without a checkpoint nobody comes back; a disk may have room again some steps later. */
    @Test
    void aRankThatIsToComeBackWhenNothingCanBeSavedIsTakenBackLater() {
        run.dies(3).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5);
        run.announces(3);
        run.step().saves().isNotPublished(1, "the disk is full");

        assertThat(run.planNotes().getLast())
                .isEqualTo(
                        "the plan does not change to the first one ([] are absent): step 1, from which all would go on, could not be saved");
        for (int step = 2; step < 11; step++) {
            assertThat(run.passUnderWay().step()).isEqualTo(step);
            run.step();
        }
        run.waits(Duration.ofSeconds(1)).forgetTold();
        run.step();
        assertThat(run.told(RankCommand.Save.class)).hasSize(5);
        run.saves().published(11).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5);
        run.hosted(3).opens(3);
        assertThat(run.passUnderWay().step()).isEqualTo(12);
        assertThat(run.followed().absent()).isEmpty();
    }

    @Test
    void aRankThatDiesWhileItComesBackIsAbsentAgain() {
        run.step();
        run.dies(3).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5);
        run.announces(3);
        run.step().saves().published(2);
        run.prepared(0, 1, 2, 4, 5);

        run.dies(3).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5);

        assertThat(run.followed().absent()).containsExactly(3);
        assertThat(run.passUnderWay().step()).isEqualTo(3);
        assertThat(run.recovery().stepsLost()).isZero();
    }

    @Test
    void aProcessThatIsGoneAgainBeforeTheStepEndsIsNotWaitedFor() {
        run.dies(3).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5);
        run.announces(3);
        run.dies(3);
        run.forgetTold();
        run.step().saves().published(1);

        assertThat(run.told(RankCommand.Prepare.class)).isEmpty();
        assertThat(run.passUnderWay().step()).isEqualTo(2);
        run.waits(Duration.ofSeconds(1));
        assertThat(run.started()).containsExactly(Optional.of(3), Optional.of(3));
    }

    @Test
    void processesThatEndAgainAndAgainAreNotStartedForEver() {
        run.dies(3).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5);
        for (int i = 0; i < 9; i++) {
            run.dies(3);
            run.waits(Duration.ofSeconds(1));
        }

        assertThat(run.started()).hasSize(5);
        assertThat(run.told(RankCommand.Prepare.class)).hasSize(5);
    }

    @Test
    void aCommitIsToldAgainToThoseWhoAreLeft() {
        run.passes().stepDone(0).stepDone(1).dies(3);
        for (int rank : List.of(0, 1)) {
            run.preparedAt(rank, 1, -1);
        }
        for (int rank : List.of(2, 4, 5)) {
            run.preparedAt(rank, 0, 1);
        }
        run.forgetTold();
        run.resumed(0, 1, 2, 4, 5);

        assertThat(run.told(RankCommand.Commit.class)).hasSize(5);
        run.stepDone(0).stepDone(1).stepDone(2).stepDone(4).stepDone(5);
        assertThat(run.committed()).containsExactly(1L);
    }

    @Test
    void aStepThatOnlyTheDeadHadNotAppliedIsDone() {
        run.passes();
        for (int rank : List.of(0, 1, 2, 4, 5)) {
            run.stepDone(rank);
        }
        run.dies(3);
        for (int rank : List.of(0, 1, 2, 4, 5)) {
            run.preparedAt(rank, 1, -1);
        }
        run.resumed(0, 1, 2, 4, 5);
        for (int rank : List.of(0, 1, 2, 4, 5)) {
            run.stepDone(rank);
        }

        assertThat(run.committed()).containsExactly(1L);
        assertThat(run.passUnderWay().step()).isEqualTo(2);
    }

    /** Micro-batch 2 was stage 1's of rank 3; its other stage has it, and does it again. */
    @Test
    void ofTheStepUnderWayOnlyWhatTheDeadHadIsDoneAgain() {
        run.dies(3);
        run.preparedInStep(0, 1, 0, 1)
                .preparedInStep(1, 1, 0, 1)
                .preparedInStep(2, 1, 2)
                .preparedInStep(4, 1, 4)
                .preparedInStep(5, 1, 4, 5)
                .resumed(0, 1, 2, 4, 5);

        assertThat(run.passUnderWay().leftOut()).containsExactly(0, 1, 4);
        run.step();
        assertThat(run.passUnderWay().leftOut()).isEmpty();
    }

    @Test
    void whatIsLeftOfAnotherStepDoesNotCount() {
        run.step();
        run.dies(3);
        run.preparedInStep(0, 2, 0, 1)
                .preparedInStep(1, 2, 0, 1)
                .preparedInStep(2, 2)
                .preparedInStep(4, 2)
                .prepared(5)
                .resumed(0, 1, 2, 4, 5);
        run.linkLost(0).preparedInStep(0, 2, 0).prepared(1, 2, 4, 5).resumed(0, 1, 2, 4, 5);

        assertThat(run.passUnderWay().step()).isEqualTo(2);
        assertThat(run.passUnderWay().leftOut()).isEmpty();
    }

    @Test
    void withoutAPlanInTimeAProcessIsWaitedFor() {
        run.plansAreMade = false;
        run.dies(3).prepared(0, 1, 2, 4, 5);
        assertThat(run.told(RankCommand.Resume.class)).isEmpty();
        assertThat(run.started()).isEmpty();

        run.waits(Duration.ofSeconds(16));

        assertThat(run.started()).containsExactly(Optional.of(3));
    }

    @Test
    void anotherSupervisorGoesOnWithoutTheSameRanks() {
        run.step();
        run.dies(3).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5).step();

        run.isTakenUp();
        for (int rank : List.of(0, 1, 2, 4, 5)) {
            run.isFound(rank);
        }
        run.waits(Duration.ofSeconds(4)).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5).applies(2);

        assertThat(run.passUnderWay().step()).isEqualTo(3);
        run.waits(Duration.ofSeconds(1));
        assertThat(run.started()).containsExactly(Optional.of(3), Optional.of(3));
        run.announces(3).step().saves().published(3);
        run.prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5).hosted(3).opens(3);
        assertThat(run.passUnderWay().step()).isEqualTo(4);
    }

    @Test
    void aRunThatIsAskedToEndEndsWithoutThem() {
        run.dies(3).prepared(0, 1, 2, 4, 5).resumed(0, 1, 2, 4, 5);
        run.announces(3);

        run.interrupts().step().stopped(0, 1, 2, 4, 5);

        assertThat(run.outcome()).isEqualTo(new RunOutcome.Interrupted(1));
    }
}
