package dev.penstock.runtime.report;

import java.util.Optional;

/**
 * Everything that the report tells.
 *
 * @param curves read from metrics.jsonl
 * @param recorder listened to the run
 * @param typical absent if no step was traced
 * @param prediction absent with fewer than two recent steps
 */
record RunFindings(
        RunFacts facts,
        RunEnding ending,
        RunCurves curves,
        RunRecorder recorder,
        Optional<TypicalStep> typical,
        Optional<Prediction> prediction) {}
