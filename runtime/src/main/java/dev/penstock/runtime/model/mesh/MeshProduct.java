package dev.penstock.runtime.model.mesh;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/**
 * Products with a matrix W of which every shard of a mesh has a block, as it has one of X and of Y.
 * All shards call the same method at the same time. Tensors are dense and F32.
 */
public interface MeshProduct {
    /** Computes {@code y = x w}. */
    void multiply(Tensor x, Tensor w, Tensor y);

    /** Computes {@code dx = dy w^T}. */
    void backwardInput(Tensor dy, Tensor w, Tensor dx);

    /** Computes {@code dw += x^T dy}, rows added up in the order of {@code blocks}. */
    void backwardWeight(Tensor x, Tensor dy, Tensor dw, TokenBlocks blocks);

    /**
     * Computes {@code y} as the rows of a table for tokens: a product whose x has a one in each
     * row.
     *
     * @param tokens of this shard's rows
     */
    void embed(Tensor tokens, Tensor table, Tensor y);

    /** Adds {@code dy} to the gradient of the rows of these tokens. */
    void embedBackward(Tensor dy, Tensor tokens, Tensor dTable, TokenBlocks blocks);
}
