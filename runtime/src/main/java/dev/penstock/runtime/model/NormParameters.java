package dev.penstock.runtime.model;

/** Of a layer norm: gain and bias, each {@code [d]}. */
record NormParameters(String name, Parameter gain, Parameter bias) {}
