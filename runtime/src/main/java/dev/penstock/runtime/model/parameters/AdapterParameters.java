package dev.penstock.runtime.model.parameters;

/**
 * A shard's parameters of a low-rank branch beside some columns of a linear layer: its columns of
 * the second matrix where the layer's columns are divided, its rows of the first where rows are.
 *
 * @param inner {@code [in, rank]}
 * @param outer {@code [rank, columns]}
 * @param firstColumn of the shard's part of the layer's output
 */
public record AdapterParameters(Parameter inner, Parameter outer, int firstColumn) {}
