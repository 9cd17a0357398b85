package dev.penstock.runtime.model;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Kernels;
import java.util.List;

/**
 * All parameters of a stage as its mirror has them.
 *
 * @param parameters in the model's order, shared ones on every stage that holds them
 * @param onReplaced told that gradients may have been replaced as well
 */
record StageTrained(List<Parameter> parameters, Kernels kernels, Runnable onReplaced)
        implements TrainedState {

    @Override
    public List<NamedTensor> gradients() {
        return parameters.stream().map(p -> p.named(p.name(), p.gradient())).toList();
    }

    @Override
    public List<NamedTensor> tensors() {
        return parameters.stream().flatMap(p -> p.state().stream()).toList();
    }

    @Override
    public void replaced() {
        for (Parameter p : parameters) {
            if (p.hasCopy()) {
                kernels.copy(p.weight(), p.factor());
            }
        }
        onReplaced.run();
    }
}
