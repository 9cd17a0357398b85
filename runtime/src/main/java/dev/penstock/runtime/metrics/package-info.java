/**
 * What is measured while a run lives: the run directory, the lines of {@code metrics.jsonl}, where
 * the time of a step went, and the progress that a terminal shows. Nothing here can stop a run.
 */
@NullMarked
package dev.penstock.runtime.metrics;

import org.jspecify.annotations.NullMarked;
