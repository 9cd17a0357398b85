package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.util.List;
import java.util.stream.Stream;

/**
 * The parts of a stage's groups that a rank holds; its mirror holds the same.
 *
 * @param groups in the model's order, shared parameters on every stage that holds them
 * @param onReplaced notified that gradients may have been replaced as well
 */
public record StageTrained(List<ParameterGroup> groups, Kernels kernels, Runnable onReplaced)
        implements TrainedState {

    @Override
    public List<NamedTensor> gradients() {
        return held().filter(ParameterGroup::isTrained)
                .map(group -> named(group.name(), group.trained().gradient().part()))
                .toList();
    }

    @Override
    public List<NamedTensor> tensors() {
        return held().flatMap(StageTrained::state).toList();
    }

    private static Stream<NamedTensor> state(ParameterGroup group) {
        NamedTensor weights = named(group.name(), group.master());
        return group.isTrained()
                ? Stream.of(
                        weights,
                        named("optimizer.m." + group.name(), group.trained().m()),
                        named("optimizer.v." + group.name(), group.trained().v()))
                : Stream.of(weights);
    }

    /**
     * Returns the groups of which this rank has a part: a small group may not have one for every
     * rank.
     */
    private Stream<ParameterGroup> held() {
        return groups.stream().filter(group -> group.master().columns() > 0);
    }

    /** Narrow elements travel in words that nobody looks into: BF16 in pairs, I8 by four. */
    private static NamedTensor named(String name, Tensor flat) {
        if (flat.type() == DType.F32) {
            return new NamedTensor(name, List.of(flat.columns()), flat);
        }
        int words = Math.toIntExact(flat.bytes() / DType.F32.bytes());
        return new NamedTensor(
                name,
                List.of(words),
                new Tensor(flat.buffer(), flat.offsetBytes(), DType.F32, 1, words, words));
    }

    @Override
    public void replaced() {
        groups.forEach(group -> group.masterChanged(kernels));
        onReplaced.run();
    }
}
