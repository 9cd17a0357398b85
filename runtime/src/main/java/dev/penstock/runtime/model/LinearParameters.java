package dev.penstock.runtime.model;

/**
 * Of {@code y = x weight + bias}: weight {@code [in, out]} (Hugging Face's Conv1D), bias {@code
 * [out]}.
 */
record LinearParameters(Parameter weight, Parameter bias) {}
