package dev.penstock.runtime.model;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;

/**
 * Embeds tokens: their rows of the token table, of which every shard has some, plus the rows of
 * their positions.
 */
final class TokenEmbedding {
    private final Kernels kernels;
    private final TensorShards shards;
    private final TokenRange range;
    private final Parameter table;
    private final Parameter positions;

    TokenEmbedding(Compute compute, ShardShape shape, StageParameters.Embedding parameters) {
        kernels = compute.kernels();
        shards = compute.shards();
        range = shape.range();
        table = parameters.tokens();
        positions = parameters.positions();
    }

    /**
     * @param tokens {@code [1, n]}
     */
    void forward(Tensor tokens, Tensor y, TokenBlocks blocks) {
        kernels.embedding(tokens, range, table.weight(), y);
        shards.sum(y);
        for (int b = 0; b < blocks.sequences(); b++) {
            kernels.add(of(positions.weight(), blocks), MicroBatchRows.inUnit(y, blocks, b));
        }
    }

    /** Adds up the gradients of both tables. */
    void backward(Tensor dy, Tensor tokens, TokenBlocks blocks) {
        kernels.embeddingBackward(dy, tokens, range, table.gradient(), blocks);
        for (int b = 0; b < blocks.sequences(); b++) {
            kernels.add(MicroBatchRows.inUnit(dy, blocks, b), of(positions.gradient(), blocks));
        }
    }

    private static Tensor of(Tensor positions, TokenBlocks blocks) {
        return positions.rows(blocks.firstToken(), blocks.tokens());
    }
}
