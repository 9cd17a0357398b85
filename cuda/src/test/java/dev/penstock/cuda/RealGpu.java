package dev.penstock.cuda;

import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Skips tests of the machine's own GPU where there is none, and says why. */
final class RealGpu implements ExecutionCondition {
    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        return EmulatedGpus.areReal() && !EmulatedGpus.problem().isEmpty()
                ? ConditionEvaluationResult.disabled(EmulatedGpus.problem())
                : ConditionEvaluationResult.enabled("there is something to test");
    }
}
