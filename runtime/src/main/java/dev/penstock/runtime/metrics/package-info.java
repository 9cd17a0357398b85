/**
 * Measurements taken during a run: the run directory, the lines of {@code metrics.jsonl}, how the
 * time of a step was spent, and the progress that a terminal shows. Nothing here can stop a run.
 */
@NullMarked
package dev.penstock.runtime.metrics;

import org.jspecify.annotations.NullMarked;
