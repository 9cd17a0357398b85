package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.runtime.model.mesh.MeshProduct;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.PartTokens.Run;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.TokenPlaces;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Embeds tokens: their rows of the token table, of which every shard has some, plus the rows of
 * their positions where those are learned, and those of their types where tokens have such. Dropout
 * is of the sum.
 */
final class TokenEmbedding {
    private final Kernels kernels;
    private final TensorShards shards;
    private final ShardShape shape;
    private final TokenRange range;
    private final Parameter table;
    private final @Nullable Parameter positions;
    private final @Nullable Parameter types;
    private final TokenPlaces held;
    private final @Nullable StreamDropout dropout;
    private final @Nullable DropoutMask mask;
    private final @Nullable MeshProduct mesh;

    /**
     * @param held where its tokens lie
     */
    TokenEmbedding(
            Compute compute,
            ShardShape shape,
            StageParameters.Embedding parameters,
            TokenPlaces held) {
        this.shape = shape;
        this.held = held;
        kernels = compute.kernels();
        shards = compute.shards();
        range = shape.range();
        mesh = shards.product(false);
        table = parameters.tokens();
        positions = parameters.positions();
        types = parameters.types();
        dropout = compute.dropout();
        mask = dropout == null ? null : dropout.mask("embeddings");
    }

    /**
     * @param tokens {@code [1, n]}
     * @param y of own rows
     */
    void forward(Tensor tokens, Tensor y, TokenBlocks blocks) {
        if (mesh != null) {
            mesh.embed(tokens, table.table(), y);
        } else {
            kernels.embedding(tokens, range, table.table(), shards.allRows(y));
            shards.sumInto(y);
        }
        if (positions != null) {
            Tensor learned = positions.weight();
            eachRun(
                    held.ofUnit(blocks),
                    shape.firstOwnRow(blocks.rows()),
                    y,
                    (first, rows) -> kernels.add(learned.rows(first, rows.rows()), rows));
        }
        if (types != null) {
            addTypes(types.weight(), y, blocks);
        }
        drop(y);
    }

    private void addTypes(Tensor weight, Tensor y, TokenBlocks blocks) {
        if (!held.typed()) {
            kernels.addBias(y, weight.rows(0, 1));
            return;
        }
        int firstRow = shape.firstOwnRow(blocks.rows());
        for (int type = 0; type < weight.rows(); type++) {
            Tensor row = weight.rows(type, 1);
            eachRun(
                    held.ofType(blocks, type),
                    firstRow,
                    y,
                    (_, rows) -> kernels.addBias(rows, row));
        }
    }

    private void drop(Tensor rows) {
        if (dropout != null && mask != null) {
            dropout.drop(kernels, rows, mask);
        }
    }

    /**
     * Adds up the gradients of all tables.
     *
     * @param dy of own rows; overwritten where anything is dropped
     */
    void backward(Tensor dy, Tensor tokens, TokenBlocks blocks) {
        boolean placesLearn = positions != null && positions.isTrained();
        boolean typesLearn = types != null && types.isTrained();
        if (!table.isTrained() && !placesLearn && !typesLearn) {
            return;
        }
        drop(dy);
        Tensor all = shards.gather(dy);
        if (table.isTrained() && mesh != null) {
            mesh.embedBackward(all, tokens, table.gradient(), blocks);
        } else if (table.isTrained()) {
            kernels.embeddingBackward(all, tokens, range, table.gradient(), blocks);
        }
        if (positions != null && placesLearn) {
            Tensor gradient = positions.gradient();
            eachRun(
                    held.ofUnit(blocks),
                    0,
                    all,
                    (first, rows) -> kernels.add(rows, gradient.rows(first, rows.rows())));
        }
        if (types != null && typesLearn) {
            typeGradients(types.gradient(), all, blocks);
        }
    }

    private void typeGradients(Tensor gradient, Tensor all, TokenBlocks blocks) {
        if (!held.typed()) {
            kernels.biasGradient(all, gradient.rows(0, 1), blocks);
            return;
        }
        for (int type = 0; type < gradient.rows(); type++) {
            Tensor row = gradient.rows(type, 1);
            eachRun(
                    held.ofType(blocks, type),
                    0,
                    all,
                    (_, rows) ->
                            kernels.biasGradient(
                                    rows, row, new TokenBlocks(1, rows.rows(), 0, blocks.grid())));
        }
    }

    @FunctionalInterface
    private interface RunWork {
        /**
         * @param first place of the first row's token
         */
        void accept(int first, Tensor rows);
    }

    /**
     * Passes on the rows of each run.
     *
     * @param rows those of the unit from {@code firstRow} on
     */
    private static void eachRun(List<Run> runs, int firstRow, Tensor rows, RunWork work) {
        for (Run run : runs) {
            int start = run.firstHere() - firstRow;
            int from = Math.max(0, start);
            int to = Math.min(rows.rows(), start + run.tokens());
            if (from < to) {
                work.accept(run.first() + from - start, rows.rows(from, to - from));
            }
        }
    }
}
