package dev.penstock.runtime.model;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.runtime.model.PartTokens.Run;
import java.util.List;
import java.util.function.BiConsumer;

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
    private final PartTokens held;

    /**
     * @param held which tokens of a sequence are here
     */
    TokenEmbedding(
            Compute compute,
            ShardShape shape,
            StageParameters.Embedding parameters,
            PartTokens held) {
        this.held = held;
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
        eachRun(blocks, y, (run, rows) -> kernels.add(of(positions.weight(), run), rows));
    }

    /** Adds up the gradients of both tables. */
    void backward(Tensor dy, Tensor tokens, TokenBlocks blocks) {
        kernels.embeddingBackward(dy, tokens, range, table.gradient(), blocks);
        eachRun(blocks, dy, (run, rows) -> kernels.add(rows, of(positions.gradient(), run)));
    }

    /** Hands over the unit's rows of tokens that follow each other in a sequence. */
    private void eachRun(TokenBlocks blocks, Tensor unit, BiConsumer<Run, Tensor> work) {
        List<Run> runs = held.of(blocks.firstToken(), blocks.tokens());
        for (int b = 0; b < blocks.sequences(); b++) {
            Tensor rows = MicroBatchRows.inUnit(unit, blocks, b);
            for (Run run : runs) {
                int first = run.firstHere() - blocks.firstToken();
                work.accept(run, rows.rows(first, run.tokens()));
            }
        }
    }

    private static Tensor of(Tensor positions, Run run) {
        return positions.rows(run.first(), run.tokens());
    }
}
