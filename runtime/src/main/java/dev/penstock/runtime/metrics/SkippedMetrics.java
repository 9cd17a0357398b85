package dev.penstock.runtime.metrics;

import dev.penstock.actors.precision.Overflow;
import java.time.Instant;

/** A line of type {@code skipped}: the step was committed, and nothing of it applied. */
public record SkippedMetrics(Instant time, Overflow overflow) implements MetricsLine {
    @Override
    public long step() {
        return overflow.step();
    }
}
