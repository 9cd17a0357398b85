package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import org.jspecify.annotations.Nullable;

/**
 * The means with which every layer computes.
 *
 * @param multiply type in which factors of matrix products are multiplied
 * @param shards the ranks that compute the same layers with other parts of their parameters
 * @param adapters scratch of low-rank branches; null if there are none
 */
public record Compute(
        Kernels kernels,
        DType multiply,
        FiniteGuard guard,
        TensorShards shards,
        @Nullable AdapterRoom adapters) {}
