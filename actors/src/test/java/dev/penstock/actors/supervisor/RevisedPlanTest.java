package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.PlanRevision;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A run follows another plan from a step on; the ranks are imagined. */
class RevisedPlanTest {
    private static final PlanRevision OTHER =
            new PlanRevision(1, List.of("pipeline.partition=[3, 1]"), "0a", "rank 1 is slow");

    private final CoordinatedRun run = new CoordinatedRun(2, RecoveryPolicy.DEFAULT).open();

    private void revise() {
        run.revises(OTHER);
    }

    @Test
    void allBeginAnewFromACheckpointOfTheStepUnderWayAndNoStepIsDoneAgain() {
        run.step();
        revise();

        run.step();
        assertThat(run.told(RankCommand.Save.class)).hasSize(2);
        run.saves().published(2);

        assertThat(run.told(RankCommand.Prepare.class))
                .hasSize(2)
                .allSatisfy(
                        order ->
                                assertThat(order.cause())
                                        .contains("pipeline.partition=[3, 1] (rank 1 is slow)"));
        run.prepared(0, 1);
        assertThat(run.told(RankCommand.Resume.class))
                .hasSize(2)
                .allSatisfy(
                        order -> {
                            assertThat(order.start()).isEqualTo(new StateSource.FromCheckpoint(2));
                            assertThat(order.links().revision()).isEqualTo(OTHER);
                        });
        run.resumed(0, 1);
        assertThat(run.passUnderWay().step()).isEqualTo(3);
        assertThat(run.recovery().stepsLost()).isZero();
    }

    @Test
    void itIsWrittenBeforeAnyRankHearsOfIt() {
        revise();
        run.step().saves().published(1);

        assertThat(run.journal())
                .containsSubsequence(
                        new JournalRecord.Published(1), new JournalRecord.Revised(OTHER))
                .last()
                .isInstanceOf(JournalRecord.EpochRaised.class);
    }

    /** Its stages are of another plan: a supervisor took the run up before it had heard of this. */
    @Test
    void whatARankHoldsOfAnotherPlanIsOfNoUse() {
        run.step();
        run.linkLost(0);
        run.prepared(0);
        run.preparedWithPlan(1, OTHER.hash());

        assertThat(run.told(RankCommand.Resume.class))
                .hasSize(2)
                .allSatisfy(order -> assertThat(order.start()).isEqualTo(new StateSource.Fresh()));
    }

    @Test
    void aRunThatIsAskedToEndKeepsItsPlan() {
        revise();
        run.interrupts().step();

        assertThat(run.told(RankCommand.Prepare.class)).isEmpty();
    }
}
