package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * The means with which every layer computes.
 *
 * @param multiply type in which factors of matrix products are multiplied
 * @param kept type of activations and gradients that only products read
 * @param shards the ranks that compute the same layers with other parts of their parameters
 * @param adapters scratch of low-rank branches; null if there are none
 * @param projected scratch for queries, keys and values of the largest unit before they are
 *     rounded; null where they are kept in F32
 */
public record Compute(
        Kernels kernels,
        DType multiply,
        DType kept,
        FiniteGuard guard,
        TensorShards shards,
        @Nullable AdapterRoom adapters,
        @Nullable Tensor projected) {

    /** Returns whether whatever only products read is rounded where it is computed. */
    boolean rounds() {
        return kept == DType.BF16;
    }

    /**
     * Returns where something that only products read is kept in the memory of a dense F32 matrix
     * that is no longer used: the matrix itself, or half of it.
     */
    Tensor keptIn(Tensor matrix) {
        return rounds()
                ? new Tensor(
                        matrix.buffer(),
                        matrix.offsetBytes(),
                        kept,
                        matrix.rows(),
                        matrix.columns(),
                        matrix.columns())
                : matrix;
    }
}
