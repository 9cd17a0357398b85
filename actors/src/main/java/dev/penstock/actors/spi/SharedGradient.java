package dev.penstock.actors.spi;

import dev.penstock.cuda.device.Tensor;
import java.util.List;

/**
 * A gradient whose parameter lives on several stages.
 *
 * @param name of the parameter, equal on all sharers
 * @param stages all sharers, rising; the sum is taken in this order
 * @param gradient dense; holds this stage's part, then the sum
 */
public record SharedGradient(String name, List<Integer> stages, Tensor gradient) {
    public SharedGradient {
        stages = List.copyOf(stages);
    }
}
