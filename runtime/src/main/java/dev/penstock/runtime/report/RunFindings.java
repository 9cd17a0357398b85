package dev.penstock.runtime.report;

import java.util.Optional;

/**
 * Everything that the report tells.
 *
 * @param typical absent if no step was traced
 */
record RunFindings(
        RunFacts facts, RunOutcome outcome, RunCurves curves, Optional<TypicalStep> typical) {}
