package dev.penstock.actors.spi;

import java.util.List;
import java.util.OptionalDouble;
import java.util.OptionalInt;

/**
 * What a stage knows at the end of a step's passes.
 *
 * @param loss mean loss over all tokens of the step, on the last stage only
 * @param norms of the parameters that this stage counts; empty in an evaluation
 * @param overflow the stage, if the loss is scaled and a number was met that is not finite
 * @param accuracy share of the targets that were the likeliest, beside the loss of a model that
 *     classifies
 */
public record StepResult(
        OptionalDouble loss,
        List<TensorNorm> norms,
        OptionalInt overflow,
        OptionalDouble accuracy) {
    public StepResult {
        norms = List.copyOf(norms);
    }

    /** All numbers are finite, or the loss is not scaled. */
    public StepResult(OptionalDouble loss, List<TensorNorm> norms) {
        this(loss, norms, OptionalInt.empty(), OptionalDouble.empty());
    }
}
