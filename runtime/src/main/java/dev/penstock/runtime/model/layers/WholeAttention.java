package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.shape.MicroBatchRows;

/** Attention over sequences that this rank holds as a whole. */
public record WholeAttention(Kernels kernels, DType multiply, AttentionShape shape)
        implements Attention {
    @Override
    public void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        int tokens = MicroBatchRows.tokens(qkv, blocks);
        kernels.attention(multiply, qkv, a.attended(), a.logSumExp(), shape, tokens, blocks);
    }

    @Override
    public boolean roundsGradients(Tensor qkv, TokenBlocks blocks) {
        return qkv.type() == DType.BF16
                && kernels.joinsProducts()
                && blocks.tokens() == MicroBatchRows.tokens(qkv, blocks);
    }

    @Override
    public void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        int tokens = MicroBatchRows.tokens(qkv, blocks);
        if (blocks.tokens() == tokens) {
            kernels.wholeAttentionBackward(
                    multiply,
                    qkv,
                    a.attended(),
                    a.logSumExp(),
                    dAttended,
                    dQkv,
                    shape,
                    tokens,
                    blocks);
            return;
        }
        kernels.attentionBackward(
                multiply, qkv, a.attended(), a.logSumExp(), dAttended, dQkv, shape, tokens, blocks);
    }
}
