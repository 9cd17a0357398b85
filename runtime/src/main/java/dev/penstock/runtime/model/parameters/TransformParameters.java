package dev.penstock.runtime.model.parameters;

import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The parameters of a head with a layer of its own, which all shards hold but for the bias.
 *
 * @param dense a linear layer {@code [d, d]}
 * @param norm behind it; null in a head that classifies
 * @param bias of the logits, this shard's part of {@code [V]}, or of as many as there are classes
 */
public record TransformParameters(
        LinearParameters dense, @Nullable NormParameters norm, Parameter bias) {
    /** Returns what all shards hold. */
    public List<Parameter> common() {
        return norm == null
                ? dense.all().toList()
                : Stream.concat(dense.all(), norm.all().stream()).toList();
    }

    /** Returns the groups in which it lies. */
    List<ParameterGroup> groups() {
        return Stream.concat(common().stream(), Stream.of(bias))
                .map(Parameter::group)
                .distinct()
                .toList();
    }
}
