package dev.penstock.runtime.model.parameters;

/** Of a layer norm: gain and bias, each {@code [d]}. */
public record NormParameters(String name, Parameter gain, Parameter bias) {}
