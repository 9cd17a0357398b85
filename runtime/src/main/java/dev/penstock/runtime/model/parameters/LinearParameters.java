package dev.penstock.runtime.model.parameters;

/**
 * The parameters of {@code y = x weight + bias}: weight {@code [in, out]} (Hugging Face's Conv1D),
 * bias {@code [out]}.
 */
public record LinearParameters(Parameter weight, Parameter bias) {}
