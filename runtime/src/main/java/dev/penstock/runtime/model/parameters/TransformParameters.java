package dev.penstock.runtime.model.parameters;

import java.util.List;
import java.util.stream.Stream;

/**
 * The parameters of a head with a layer of its own, which all shards hold but for the bias.
 *
 * @param dense a linear layer {@code [d, d]}
 * @param bias of the logits, this shard's part of {@code [V]}
 */
public record TransformParameters(LinearParameters dense, NormParameters norm, Parameter bias) {
    /** Returns what all shards hold. */
    public List<Parameter> common() {
        return Stream.concat(dense.all(), norm.all().stream()).toList();
    }

    /** Returns the groups in which it lies. */
    List<ParameterGroup> groups() {
        return Stream.concat(common().stream(), Stream.of(bias))
                .map(Parameter::group)
                .distinct()
                .toList();
    }
}
