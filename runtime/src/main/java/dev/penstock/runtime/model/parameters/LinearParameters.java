package dev.penstock.runtime.model.parameters;

import org.jspecify.annotations.Nullable;

/**
 * The parameters of {@code y = x weight + bias}: weight {@code [in, out]} (Hugging Face's Conv1D),
 * bias {@code [out]}, null where there is none.
 */
public record LinearParameters(Parameter weight, @Nullable Parameter bias) {}
