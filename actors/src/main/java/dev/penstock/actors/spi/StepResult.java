package dev.penstock.actors.spi;

import java.util.List;
import java.util.OptionalDouble;

/**
 * What a stage knows at the end of a step's passes.
 *
 * @param loss mean loss over all tokens of the step, on the last stage only
 * @param norms of the parameters that this stage counts; empty in an evaluation
 */
public record StepResult(OptionalDouble loss, List<TensorNorm> norms) {
    public StepResult {
        norms = List.copyOf(norms);
    }
}
