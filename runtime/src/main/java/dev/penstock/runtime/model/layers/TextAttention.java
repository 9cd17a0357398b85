package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.shape.FeedRows;
import java.util.function.Supplier;

/**
 * Attention of one block during inference: tokens of several texts, each over the kept keys and
 * values of its own text.
 *
 * @param grid of blocks of queries
 * @param rows of the current unit
 * @param kept queries, keys and values of the texts in flight {@code [tokens of all, (h+2g)k]}
 */
public record TextAttention(
        Kernels kernels,
        DType multiply,
        AttentionShape shape,
        int grid,
        Supplier<FeedRows> rows,
        Tensor kept)
        implements Attention {

    /**
     * @param qkv of the unit's rows {@code [n, (h+2g)k]}
     */
    @Override
    public void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        for (FeedRows.Run run : rows.get().runs()) {
            int first = run.firstRow();
            int count = run.feed().count();
            int tokens = run.feed().position() + count;
            int stay = run.feed().dropped() > 0 ? run.feed().position() : 0;
            Tensor text = kept.rows(run.keptFrom(), Math.max(tokens, run.feed().dropped() + stay));
            if (stay > 0) {
                kernels.copy(text.rows(run.feed().dropped(), stay), text.rows(0, stay));
            }
            kernels.copy(qkv.rows(first, count), text.rows(run.feed().position(), count));
            kernels.attention(
                    multiply,
                    text.rows(0, tokens),
                    a.attended().rows(first, count),
                    a.logSumExp().rows(first, count),
                    shape,
                    tokens,
                    new TokenBlocks(1, count, run.feed().position(), grid));
        }
    }

    @Override
    public void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        throw new UnsupportedOperationException("inference runs forward only");
    }
}
