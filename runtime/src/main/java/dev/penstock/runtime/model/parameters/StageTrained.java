package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.util.List;
import java.util.stream.Stream;

/**
 * The parts that a rank holds of a stage's groups that are trained; its mirror holds the same. The
 * others never change: a rank that takes over reads them where the first one did.
 *
 * @param groups in the model's order, shared parameters on every stage that holds them
 * @param onReplaced notified that gradients may have been replaced as well
 */
public record StageTrained(List<ParameterGroup> groups, Kernels kernels, Runnable onReplaced)
        implements TrainedState {

    @Override
    public List<NamedTensor> gradients() {
        return held().map(group -> named(group.name(), group.trained().gradient().part())).toList();
    }

    @Override
    public List<NamedTensor> tensors() {
        return held().flatMap(StageTrained::state).toList();
    }

    private static Stream<NamedTensor> state(ParameterGroup group) {
        return Stream.of(
                named(group.name(), group.master()),
                named("optimizer.m." + group.name(), Moments.bits(group.trained().moments().m())),
                named("optimizer.v." + group.name(), Moments.bits(group.trained().moments().v())));
    }

    /**
     * Returns the trained groups of which this rank has a part: a small group may not have one for
     * every rank.
     */
    private Stream<ParameterGroup> held() {
        return groups.stream()
                .filter(ParameterGroup::isTrained)
                .filter(group -> group.master().columns() > 0);
    }

    private static NamedTensor named(String name, Tensor flat) {
        return new NamedTensor(name, List.of(flat.columns()), flat);
    }

    @Override
    public void replaced() {
        groups.forEach(group -> group.masterChanged(kernels));
        onReplaced.run();
    }
}
