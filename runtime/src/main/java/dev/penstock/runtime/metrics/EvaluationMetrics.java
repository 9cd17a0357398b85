package dev.penstock.runtime.metrics;

import java.time.Instant;

/**
 * A line of type {@code evaluation}.
 *
 * @param validationLoss mean loss over the held-out batches, natural logarithm
 */
public record EvaluationMetrics(long step, Instant time, double validationLoss)
        implements MetricsLine {}
