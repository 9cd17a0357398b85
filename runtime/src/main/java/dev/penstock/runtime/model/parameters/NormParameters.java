package dev.penstock.runtime.model.parameters;

/** The parameters of a layer norm: gain and bias, each {@code [d]}. */
public record NormParameters(String name, Parameter gain, Parameter bias) {}
