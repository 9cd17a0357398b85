package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;

/**
 * What every layer computes with.
 *
 * @param multiply type in which factors of matrix products are multiplied
 * @param shards who computes the same layers with other parts of their parameters
 */
public record Compute(Kernels kernels, DType multiply, FiniteGuard guard, TensorShards shards) {}
