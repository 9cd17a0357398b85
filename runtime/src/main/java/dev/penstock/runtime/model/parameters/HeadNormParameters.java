package dev.penstock.runtime.model.parameters;

import java.util.List;

/**
 * The parameters of the norms of every head of queries and of keys: gains, each {@code [k]}, the
 * same for all heads.
 */
public record HeadNormParameters(Parameter queries, Parameter keys) {
    /** Returns all parameters. */
    public List<Parameter> all() {
        return List.of(queries, keys);
    }
}
