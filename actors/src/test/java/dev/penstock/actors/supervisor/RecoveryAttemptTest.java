package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RecoveryReport.Restart;
import dev.penstock.actors.supervisor.RecoveryAttempt.Origin;
import dev.penstock.actors.supervisor.RecoveryAttempt.Reason;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What is known of a recovery over all of its epochs, and what is told of it. */
class RecoveryAttemptTest {
    @Test
    void theReportCountsFromTheFirstDeathToTheLastRankBack() {
        RecoveryReport report =
                attempt(new Reason.Loss())
                        .died(List.of(3, 1))
                        .detectedAfter(5)
                        .died(1)
                        .detectedAfter(4)
                        .report(Restart.MIRROR, 3, 7, 110);

        assertThat(report)
                .isEqualTo(
                        new RecoveryReport(
                                "a cause", 3, List.of(1, 3), Restart.MIRROR, 5, 100, 0, 7));
    }

    @Test
    void whoWentBackInAnyEpochLostSteps() {
        RecoveryReport report =
                attempt(new Reason.Loss()).goneBack().report(Restart.MEMORY, 3, 4, 110);

        assertThat(report.restart()).isEqualTo(Restart.CHECKPOINT);
        assertThat(report.stepsLost()).isEqualTo(3);
    }

    @Test
    void aStepThatIsNotFiniteIsLeftOutUnlessAllIsDoneAgain() {
        RecoveryAttempt attempt = attempt(new Reason.LeaveOut(8));

        assertThat(attempt.leftOut()).hasValue(8);
        assertThat(attempt.report(Restart.MEMORY, 2, 8, 20).restart()).isEqualTo(Restart.SKIPPED);
        assertThat(attempt.report(Restart.MIRROR, 2, 8, 20).restart()).isEqualTo(Restart.MIRROR);
        assertThat(attempt.goneBack().leftOut()).isEmpty();
        assertThat(attempt(new Reason.GoBack()).leftOut()).isEmpty();
    }

    @Test
    void ranksAreGatheredForALeaseByWhoTakesTheRunUp() {
        RecoveryAttempt takesUp = attempt(new Reason.TakeUp(30, false));

        assertThat(takesUp.gathersAt(29)).isTrue();
        assertThat(takesUp.gathersAt(30)).isFalse();
        assertThat(attempt(new Reason.Loss()).gathersAt(Long.MIN_VALUE)).isFalse();
    }

    @Test
    void aRunThatWasNeverOpenForItsListenerOpensWithTheRecovery() {
        assertThat(attempt(new Reason.LossInPlacing()).opens()).isTrue();
        assertThat(attempt(new Reason.TakeUp(30, false)).opens()).isTrue();
        assertThat(attempt(new Reason.Loss()).opens()).isFalse();
    }

    @Test
    void aRankThatIsFoundIsNotDead() {
        assertThat(attempt(new Reason.TakeUp(30, false)).died(2).lives(2).dead().isEmpty())
                .isTrue();
    }

    // ---- waits ----------------------------------------------------------------------------------

    @Test
    void onlyTheFirstTimeThatARunParksIsNewsAtOnce() {
        RecoveryWaits parked = RecoveryWaits.NONE.saidUntil(90).parked(50);
        assertThat(parked.mayReport(50)).isTrue();

        RecoveryWaits again = parked.saidUntil(60).parked(55);

        assertThat(again.parkedSinceNanos()).hasValue(50);
        assertThat(again.mayReport(59)).isFalse();
        assertThat(again.mayReport(60)).isTrue();
    }

    @Test
    void timesBeforeTheClocksZeroAreTimesLikeOthers() {
        RecoveryWaits waits = RecoveryWaits.NONE.parked(-50).parked(-40);

        assertThat(waits.parkedSinceNanos()).hasValue(-50);
        assertThat(waits.areOpenEnded()).isTrue();
    }

    @Test
    void roomIsMissedSinceTheFirstTime() {
        assertThat(RecoveryWaits.NONE.areOpenEnded()).isFalse();
        assertThat(RecoveryWaits.NONE.mayReport(Long.MIN_VALUE)).isTrue();

        RecoveryWaits waits = RecoveryWaits.NONE.withoutRoom(10).withoutRoom(20);

        assertThat(waits.noRoomSinceNanos()).hasValue(10);
        assertThat(waits.areOpenEnded()).isTrue();
    }

    // ---- sources --------------------------------------------------------------------------------

    @Test
    void aMissingRankComesFromItsMirrorAndTheLivingKeepWhatTheyHave() {
        var source = new RestartSource.Mirrors(7, Map.of(1, 2));

        assertThat(source.ofMissing(1)).isEqualTo(new StateSource.FromMirror(2, 7));
        assertThat(source.ofLiving()).isEqualTo(new StateSource.Kept());
        assertThat(source.reported()).isEqualTo(Restart.MIRROR);
    }

    @Test
    void fromACheckpointAllStartAlike() {
        var source = new RestartSource.Checkpoint(new StateSource.FromCheckpoint(4), Map.of());

        assertThat(source.ofMissing(1)).isEqualTo(source.ofLiving());
        assertThat(source.ofLiving()).isEqualTo(new StateSource.FromCheckpoint(4));
        assertThat(source.reported()).isEqualTo(Restart.CHECKPOINT);
    }

    @Test
    void fromMemoryNobodyIsMissing() {
        var source = new RestartSource.Memory();

        assertThat(source.ofLiving()).isEqualTo(new StateSource.Kept());
        assertThatThrownBy(() -> source.ofMissing(1)).hasMessage("rank 1 is not missing");
    }

    private static RecoveryAttempt attempt(Reason reason) {
        return RecoveryAttempt.begin(new Origin("a cause", reason, 10, 7));
    }
}
