package dev.penstock.runtime.model.parameters;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** The parameters of a norm: gain and bias, each {@code [d]}; no bias where the norm has none. */
public record NormParameters(String name, Parameter gain, @Nullable Parameter bias) {
    /** Returns all parameters. */
    public List<Parameter> all() {
        return bias == null ? List.of(gain) : List.of(gain, bias);
    }
}
