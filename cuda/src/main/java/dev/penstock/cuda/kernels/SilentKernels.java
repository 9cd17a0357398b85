package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import org.jspecify.annotations.Nullable;

/** Kernels that hold nothing for themselves; to be extended by those that do. */
public class SilentKernels implements CountedKernels {
    @Override
    public long bytes() {
        return 0;
    }

    @Override
    public CountedKernels anew() {
        return new SilentKernels();
    }

    @Override
    public void gemm(
            DType multiply,
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate) {}

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {}

    @Override
    public void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks) {}

    @Override
    public boolean writesBFloat16() {
        return true;
    }

    @Override
    public void biasGradientRounded(Tensor dy, Tensor dBias, TokenBlocks blocks, Tensor y) {}

    @Override
    public void addBias(Tensor y, Tensor bias) {}

    @Override
    public void addBiasRounded(Tensor y, Tensor bias, Tensor rounded) {}

    @Override
    public void addBiasAndResidual(Tensor y, Tensor bias, Tensor residual) {}

    @Override
    public void embedding(Tensor tokens, TokenRange range, Tensor table, Tensor y) {}

    @Override
    public void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks) {}

    @Override
    public void layerNorm(
            Tensor x,
            Tensor gain,
            Tensor bias,
            Tensor y,
            Tensor mean,
            Tensor rstd,
            double epsilon) {}

    @Override
    public void layerNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {}

    @Override
    public void layerNormBackwardWeight(
            Tensor dy,
            Tensor x,
            Tensor mean,
            Tensor rstd,
            Tensor dGain,
            Tensor dBias,
            TokenBlocks blocks) {}

    @Override
    public void layerNormPart(Tensor x, Tensor part) {}

    @Override
    public void layerNormOfParts(
            Tensor parts,
            Tensor x,
            Tensor gain,
            Tensor bias,
            Tensor y,
            Tensor mean,
            Tensor rstd,
            double epsilon) {}

    @Override
    public void layerNormBackwardPart(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor part) {}

    @Override
    public void layerNormBackwardOfParts(
            Tensor parts, Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {}

    @Override
    public void rmsNorm(Tensor x, Tensor gain, Tensor y, Tensor r, double epsilon) {}

    @Override
    public void rmsNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor r, Tensor dx, boolean accumulate) {}

    @Override
    public void rmsNormBackwardWeight(
            Tensor dy, Tensor x, Tensor r, Tensor dGain, TokenBlocks blocks) {}

    @Override
    public void biasGelu(Tensor pre, Tensor bias, Tensor y, Gelu form) {}

    @Override
    public void geluBackward(Tensor pre, Tensor dy, Gelu form) {}

    @Override
    public void geluRounded(Tensor pre, Tensor bias, Tensor y, Gelu form) {}

    @Override
    public void geluBackwardRounded(
            Tensor pre,
            Tensor bias,
            Tensor dy,
            Gelu form,
            Tensor dPre,
            @Nullable Tensor dBias,
            TokenBlocks blocks) {}

    @Override
    public void swiGlu(Tensor gated, Tensor z) {}

    @Override
    public void swiGluBackward(Tensor gated, Tensor dz, Tensor dGated) {}

    @Override
    public void biasTanh(Tensor y, Tensor bias) {}

    @Override
    public void tanhBackward(Tensor y, Tensor dy) {}

    @Override
    public void geGlu(Tensor gated, Tensor z) {}

    @Override
    public void geGluBackward(Tensor gated, Tensor dz, Tensor dGated) {}

    @Override
    public void retentionStates(
            Tensor qkv, Tensor states, RetentionShape shape, int context, TokenBlocks blocks) {}

    @Override
    public void retention(
            Tensor qkv,
            Tensor states,
            Tensor y,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {}

    @Override
    public void retentionBackward(
            Tensor qkv,
            Tensor states,
            Tensor dy,
            Tensor dQkv,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {}

    @Override
    public void retentionStateGradient(
            Tensor qkv,
            Tensor gradient,
            Tensor dy,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {}

    @Override
    public void gatedHeadNorm(
            Tensor x, @Nullable Tensor gate, Tensor y, Tensor r, double epsilon) {}

    @Override
    public void gatedHeadNormBackward(
            Tensor dy,
            Tensor x,
            @Nullable Tensor gate,
            Tensor r,
            Tensor dx,
            @Nullable Tensor dGate) {}

    @Override
    public void dropout(Tensor x, Tensor rowKeys, DropoutMask mask, Tensor y, boolean accumulate) {}

    @Override
    public void rotate(Tensor x, Tensor turns, boolean back) {}

    @Override
    public void rotateNeighbours(Tensor x, Tensor turns, boolean back) {}

    @Override
    public void attention(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {}

    @Override
    public void attentionBackward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {}

    @Override
    public void attentionToEarlier(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            EarlierKeys keys) {}

    @Override
    public void attentionToEarlierBackward(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dq,
            Tensor dKeyValues,
            EarlierKeys keys) {}

    @Override
    public void softmaxPart(
            Tensor logits, Tensor targets, TokenRange range, Tensor part, boolean gradient) {}

    @Override
    public void crossEntropy(
            Tensor parts,
            int shard,
            Tensor logits,
            Tensor targets,
            TokenRange range,
            Tensor losses,
            float gradientScale) {}

    @Override
    public void crossEntropyOfRows(
            Tensor logits, Tensor targets, Tensor losses, float gradientScale, Tensor dLogits) {}

    @Override
    public void encode(RowCodec codec, Tensor x, Tensor coded) {}

    @Override
    public void decode(RowCodec codec, Tensor coded, Tensor x) {}

    @Override
    public boolean foldGradient(Tensor gradient, Tensor sum, float limit, boolean accumulate) {
        return true;
    }

    @Override
    public void unfoldGradient(Tensor sum, Tensor gradient) {}

    @Override
    public void zero(Tensor x) {}

    @Override
    public void add(Tensor x, Tensor y) {}

    @Override
    public void subtract(Tensor x, Tensor y) {}

    @Override
    public void blend(float a, Tensor x, float b, Tensor y) {}

    @Override
    public void copy(Tensor x, Tensor y) {}

    @Override
    public double squaredNorm(Tensor x) {
        return 0;
    }

    @Override
    public boolean allFinite(Tensor x) {
        return true;
    }

    @Override
    public void adamW(Tensor weight, Tensor gradient, Tensor m, Tensor v, AdamWStep step) {}

    @Override
    public void finish() {}
}
