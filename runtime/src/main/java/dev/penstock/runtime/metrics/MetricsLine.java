package dev.penstock.runtime.metrics;

import java.time.Instant;

/** One line of {@code metrics.jsonl}; the format is in {@code docs/metrics.md}. */
public sealed interface MetricsLine
        permits StepMetrics, SkippedMetrics, EvaluationMetrics, TaskMetrics, RecoveryMetrics {
    /** Returns the number of training steps done, from 1. */
    long step();

    /** Returns when the line was written. */
    Instant time();
}
