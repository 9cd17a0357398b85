package dev.penstock.runtime.model.parameters;

/**
 * The parameters of a low-rank branch beside some columns of a linear layer.
 *
 * @param inner {@code [in, rank]}
 * @param outer {@code [rank, columns]}
 * @param firstColumn of the layer's output
 */
public record AdapterParameters(Parameter inner, Parameter outer, int firstColumn) {}
