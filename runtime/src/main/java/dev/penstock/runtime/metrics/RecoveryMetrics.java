package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RecoveryReport;
import java.time.Instant;

/** A line of type {@code recovery}: the run recovered and continues after this step. */
public record RecoveryMetrics(Instant time, RecoveryReport report) implements MetricsLine {
    @Override
    public long step() {
        return report.fromStep();
    }
}
