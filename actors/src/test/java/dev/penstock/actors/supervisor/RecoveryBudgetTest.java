package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Recoveries that were counted on hosts whose clocks differ. */
class RecoveryBudgetTest {
    private static final long HOUR_MS = 3_600_000;
    private static final long TODAY_MS = 100 * HOUR_MS;
    private static final long SECOND = 1_000_000_000;

    /** Two recoveries in ten seconds. */
    private final RecoveryBudget budget =
            new RecoveryBudget(
                    new RecoveryPolicy(
                            true,
                            2,
                            Duration.ofSeconds(10),
                            Duration.ZERO,
                            RecoveryPolicy.NonFinite.HALT),
                    new Outbox(new RankTable(TestPlans.chain(2))),
                    TODAY_MS);

    private static JournalRecord.Counted at(long ms) {
        return new JournalRecord.Counted(ms, "a death");
    }

    @Test
    void aClockThatWasAheadDoesNotUseTheBudgetUpForAsLong() {
        budget.takeUp(List.of(at(TODAY_MS + HOUR_MS), at(TODAY_MS + HOUR_MS + 1_000)), 0);

        assertThat(budget.spend("another", SECOND)).isPresent();
        assertThat(budget.spend("a late one", 22 * SECOND)).isEmpty();
    }

    @Test
    void recoveriesLongBeforeTheLastOneStayLongBeforeIt() {
        budget.takeUp(
                List.of(
                        at(TODAY_MS + HOUR_MS - 60_000),
                        at(TODAY_MS + HOUR_MS - 30_000),
                        at(TODAY_MS + HOUR_MS)),
                0);

        assertThat(budget.spend("another", SECOND)).isEmpty();
    }

    @Test
    void whatWasWrittenBehindIsNotEarlier() {
        budget.takeUp(List.of(at(TODAY_MS - 1), at(TODAY_MS - HOUR_MS)), 0);

        assertThat(budget.spend("one", SECOND)).isEmpty();
        assertThat(budget.spend("another", SECOND)).isEmpty();
        assertThat(budget.spend("one too many", SECOND)).isPresent();
    }
}
