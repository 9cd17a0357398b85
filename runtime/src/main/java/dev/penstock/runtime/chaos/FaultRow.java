package dev.penstock.runtime.chaos;

import dev.penstock.runtime.report.FaultOutcome;
import java.time.Instant;
import java.util.Optional;

/**
 * What became of a fault.
 *
 * @param fault in words
 * @param outcome in a word or two
 * @param fired when it happened; empty for a condition, and for what was not reached
 * @param recovery what followed, if the run had to recover from it
 */
public record FaultRow(
        String fault,
        String outcome,
        Optional<Instant> fired,
        Optional<FaultOutcome.Recovered> recovery) {
    static FaultRow of(FaultOutcome outcome) {
        return new FaultRow(
                outcome.fault().describe(), outcome.told(), outcome.fired(), outcome.recovery());
    }
}
