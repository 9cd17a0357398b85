package dev.penstock.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.Fault;
import dev.penstock.actors.fault.Fault.Place;
import dev.penstock.actors.fault.FaultMarkers;
import dev.penstock.actors.fault.FaultPlan;
import dev.penstock.actors.fault.StepSpan;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RecoveryReport.Restart;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FaultOutcomeTest {
    private static final Instant START = Instant.parse("2026-01-02T03:04:05Z");
    private static final Fault KILL_1 = new Fault.KillRank(1, 5, new Place.Begin());
    private static final Fault KILL_2 = new Fault.KillRank(2, 9, new Place.Begin());
    private static final Fault PAUSE_1 =
            new Fault.PauseRank(1, Duration.ofSeconds(1), 3, new Place.Begin());
    private static final Fault SLOW =
            new Fault.SlowStage(0, OptionalInt.empty(), 2, Duration.ZERO, new StepSpan(1, 9));

    @TempDir Path folder;

    @Test
    void eachKillIsFollowedByTheRecoveryThatReplacedItsRank() {
        fire(0, KILL_1, 10_000);
        fire(1, KILL_2, 20_000);

        List<FaultOutcome> outcomes =
                outcomes(
                        List.of(KILL_1, KILL_2),
                        recovery(1, 10_900, 800, 0),
                        recovery(2, 20_750, 700, 3));

        assertThat(outcomes).extracting(FaultOutcome::told).containsOnly("recovered");
        assertThat(outcomes.get(0).recovery()).contains(new FaultOutcome.Recovered(100, 800, 0));
        assertThat(outcomes.get(1).recovery()).contains(new FaultOutcome.Recovered(50, 700, 3));
    }

    @Test
    void aPauseThatIsBorneHasNothingToDoWithALaterRecoveryOfItsRank() {
        fire(0, PAUSE_1, 1_000);
        fire(1, KILL_1, 30_000);

        List<FaultOutcome> outcomes =
                outcomes(List.of(PAUSE_1, KILL_1), recovery(1, 31_000, 900, 0));

        assertThat(outcomes)
                .extracting(FaultOutcome::told)
                .containsExactly("survived", "recovered");
    }

    @Test
    void aConditionIsBorneAndAnEventThatNeverHappenedWasNotReached() {
        assertThat(outcomes(List.of(SLOW, KILL_1)))
                .extracting(FaultOutcome::told)
                .containsExactly("survived", "not reached");
    }

    private void fire(int index, Fault fault, long millis) {
        new FaultMarkers(folder, InstantSource.fixed(START.plusMillis(millis))).claim(index, fault);
    }

    private static RecoveryBook.Entry recovery(
            int rank, long resumedMillis, long resumeMillis, long stepsLost) {
        var report =
                new RecoveryReport(
                        "its process ended",
                        2,
                        List.of(rank),
                        Restart.CHECKPOINT,
                        0,
                        resumeMillis * 1_000_000,
                        stepsLost,
                        4);
        return new RecoveryBook.Entry(report, START.plusMillis(resumedMillis));
    }

    private List<FaultOutcome> outcomes(List<Fault> faults, RecoveryBook.Entry... recoveries) {
        var markers = new FaultMarkers(folder, InstantSource.fixed(START));
        return FaultOutcome.of(new FaultPlan(faults), markers, List.of(recoveries));
    }
}
