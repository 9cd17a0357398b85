package dev.penstock.runtime.metrics;

import java.time.Instant;
import java.util.OptionalDouble;

/**
 * A line of type {@code evaluation}.
 *
 * @param validationLoss mean loss over the held-out batches, natural logarithm
 * @param validationAccuracy share of the held-out texts whose class was found; empty unless the
 *     model classifies
 */
public record EvaluationMetrics(
        long step, Instant time, double validationLoss, OptionalDouble validationAccuracy)
        implements MetricsLine {
    /** Of a model that does not classify. */
    public EvaluationMetrics(long step, Instant time, double validationLoss) {
        this(step, time, validationLoss, OptionalDouble.empty());
    }
}
