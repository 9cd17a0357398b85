package dev.penstock.cuda.kernels;

import static dev.penstock.cuda.kernels.TensorRules.broken;
import static dev.penstock.cuda.kernels.TensorRules.dense;
import static dev.penstock.cuda.kernels.TensorRules.factor;
import static dev.penstock.cuda.kernels.TensorRules.matrix;
import static dev.penstock.cuda.kernels.TensorRules.result;
import static dev.penstock.cuda.kernels.TensorRules.rowsOfUnit;
import static dev.penstock.cuda.kernels.TensorRules.shape;
import static dev.penstock.cuda.kernels.TensorRules.type;
import static dev.penstock.cuda.kernels.TensorRules.vector;

import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The shape and type rules of the op table in front of an implementation, which may then trust its
 * arguments. Costs a few comparisons per op and allocates nothing.
 */
public final class CheckedKernels implements Kernels {
    private final Kernels kernels;

    public CheckedKernels(Kernels kernels) {
        this.kernels = kernels;
    }

    @Override
    public void gemm(
            DType multiply,
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate) {
        factor("gemm", "a", a, multiply);
        if (b.type() == DType.I8 && multiply == DType.F32) {
            wholeRows("gemm", "b", b);
        } else {
            factor("gemm", "b", b, multiply);
        }
        int m = transposeA ? a.columns() : a.rows();
        int k = transposeA ? a.rows() : a.columns();
        int n = transposeB ? b.rows() : b.columns();
        matrix("gemm", "b", b, b.type(), transposeB ? n : k, transposeB ? k : n);
        matrix("gemm", "c", c, m, n);
        kernels.gemm(multiply, transposeA, a, transposeB, b, c, accumulate);
    }

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        factor("weightGradient", "x", x, multiply);
        factor("weightGradient", "dy", dy, multiply);
        rowsOfUnit("weightGradient", "x", x, blocks);
        rowsOfUnit("weightGradient", "dy", dy, blocks);
        matrix("weightGradient", "dWeight", dWeight, x.columns(), dy.columns());
        kernels.weightGradient(multiply, x, dy, dWeight, blocks);
    }

    @Override
    public void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks) {
        result("biasGradient", "dy", dy, blocks.rows(), dy.columns(), joinsProducts());
        vector("biasGradient", "dBias", dBias, dy.columns());
        kernels.biasGradient(dy, dBias, blocks);
    }

    @Override
    public boolean writesBFloat16() {
        return kernels.writesBFloat16();
    }

    @Override
    public boolean joinsProducts() {
        return kernels.joinsProducts();
    }

    @Override
    public void gemmThen(Tensor a, boolean transposeB, Tensor b, Epilogue epilogue, Tensor c) {
        String op = "gemmThen";
        type(op, "a", a, DType.BF16);
        int k = a.columns();
        int n = c.columns();
        matrix(op, "b", b, DType.BF16, transposeB ? n : k, transposeB ? k : n);
        boolean adds = epilogue instanceof Epilogue.BiasAndResidual;
        matrix(op, "c", c, adds ? DType.F32 : DType.BF16, a.rows(), n);
        switch (epilogue) {
            case Epilogue.Rounding() -> {}
            case Epilogue.Bias(Tensor bias) -> vector(op, "bias", bias, n);
            case Epilogue.BiasAndResidual(Tensor bias, Tensor residual) -> {
                vector(op, "bias", bias, n);
                matrix(op, "residual", residual, c.rows(), n);
            }
            case Epilogue.BiasAndGelu(Tensor bias, Tensor pre) -> {
                vector(op, "bias", bias, n);
                matrix(op, "pre", pre, DType.BF16, c.rows(), n);
            }
            case Epilogue.GeluGradient(Tensor pre) ->
                    matrix(op, "pre", pre, DType.BF16, c.rows(), n);
        }
        kernels.gemmThen(a, transposeB, b, epilogue, c);
    }

    @Override
    public void biasGradientRounded(Tensor dy, Tensor dBias, TokenBlocks blocks, Tensor y) {
        String op = "biasGradientRounded";
        type(op, "dy", dy, DType.F32);
        rowsOfUnit(op, "dy", dy, blocks);
        vector(op, "dBias", dBias, dy.columns());
        matrix(op, "y", y, DType.BF16, dy.rows(), dy.columns());
        kernels.biasGradientRounded(dy, dBias, blocks, y);
    }

    @Override
    public void addBias(Tensor y, Tensor bias) {
        type("addBias", "y", y, DType.F32);
        vector("addBias", "bias", bias, y.columns());
        kernels.addBias(y, bias);
    }

    @Override
    public void addBiasRounded(Tensor y, Tensor bias, Tensor rounded) {
        type("addBiasRounded", "y", y, DType.F32);
        vector("addBiasRounded", "bias", bias, y.columns());
        matrix("addBiasRounded", "rounded", rounded, DType.BF16, y.rows(), y.columns());
        kernels.addBiasRounded(y, bias, rounded);
    }

    @Override
    public void addBiasAndResidual(Tensor y, Tensor bias, Tensor residual) {
        type("addBiasAndResidual", "y", y, DType.F32);
        vector("addBiasAndResidual", "bias", bias, y.columns());
        matrix("addBiasAndResidual", "residual", residual, y.rows(), y.columns());
        kernels.addBiasAndResidual(y, bias, residual);
    }

    @Override
    public void embedding(Tensor tokens, TokenRange range, Tensor table, Tensor y) {
        if (table.type() == DType.I8) {
            wholeRows("embedding", "the token table", table);
        } else if (table.type() != DType.BF16 && table.type() != DType.F16) {
            type("embedding", "the token table", table, DType.F32);
        }
        checkEmbedding("embedding", tokens, range, table, y);
        kernels.embedding(tokens, range, table, y);
    }

    @Override
    public void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks) {
        rowsOfUnit("embeddingBackward", "dy", dy, blocks);
        type("embeddingBackward", "the token table", dTable, DType.F32);
        checkEmbedding("embeddingBackward", tokens, range, dTable, dy);
        kernels.embeddingBackward(dy, tokens, range, dTable, blocks);
    }

    private static void wholeRows(String op, String name, Tensor tensor) {
        if (tensor.stride() != tensor.type().rowStride(tensor.columns())) {
            throw broken(op, "whole rows with their scales in " + name, shape(tensor));
        }
    }

    private static void checkEmbedding(
            String op, Tensor tokens, TokenRange range, Tensor table, Tensor y) {
        matrix(op, "the embedded rows", y, y.rows(), table.columns());
        matrix(op, "tokens", tokens, DType.I32, 1, y.rows());
        tokensOf(op, "rows", range, table.rows());
    }

    private static void tokensOf(String op, String name, TokenRange range, int count) {
        if (count > range.vocabulary() - range.first()) {
            throw broken(op, "at most as many " + name + " as there are tokens in " + range, count);
        }
    }

    @Override
    public void layerNorm(
            Tensor x,
            Tensor gain,
            Tensor bias,
            Tensor y,
            Tensor mean,
            Tensor rstd,
            double epsilon) {
        checkMoments("layerNorm", x, mean, rstd);
        result("layerNorm", "y", y, x.rows(), x.columns(), writesBFloat16());
        vector("layerNorm", "gain", gain, x.columns());
        vector("layerNorm", "bias", bias, x.columns());
        epsilon("layerNorm", epsilon);
        kernels.layerNorm(x, gain, bias, y, mean, rstd, epsilon);
    }

    @Override
    public void layerNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        checkInputOfNorm("layerNormBackwardInput", dy, x, gain, mean, rstd, dx);
        kernels.layerNormBackwardInput(dy, x, gain, mean, rstd, dx);
    }

    private void checkInputOfNorm(
            String op, Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        checkNorm(op, x, dy, mean, rstd);
        vector(op, "gain", gain, x.columns());
        matrix(op, "dx", dx, x.rows(), x.columns());
    }

    @Override
    public void layerNormBackwardWeight(
            Tensor dy,
            Tensor x,
            Tensor mean,
            Tensor rstd,
            Tensor dGain,
            Tensor dBias,
            TokenBlocks blocks) {
        checkNorm("layerNormBackwardWeight", x, dy, mean, rstd);
        checkWeightOfNorm("layerNormBackwardWeight", x, dGain, dBias, blocks);
        kernels.layerNormBackwardWeight(dy, x, mean, rstd, dGain, dBias, blocks);
    }

    private static void checkWeightOfNorm(
            String op, Tensor x, Tensor dGain, Tensor dBias, TokenBlocks blocks) {
        rowsOfUnit(op, "x", x, blocks);
        vector(op, "dGain", dGain, x.columns());
        vector(op, "dBias", dBias, x.columns());
    }

    @Override
    public void layerNormBackward(
            Tensor dy,
            Tensor x,
            Tensor gain,
            Tensor mean,
            Tensor rstd,
            Tensor dx,
            Tensor dGain,
            Tensor dBias,
            TokenBlocks blocks) {
        checkInputOfNorm("layerNormBackward", dy, x, gain, mean, rstd, dx);
        checkWeightOfNorm("layerNormBackward", x, dGain, dBias, blocks);
        kernels.layerNormBackward(dy, x, gain, mean, rstd, dx, dGain, dBias, blocks);
    }

    private void checkNorm(String op, Tensor x, Tensor dy, Tensor mean, Tensor rstd) {
        checkMoments(op, x, mean, rstd);
        result(op, "dy", dy, x.rows(), x.columns(), joinsProducts());
    }

    private static void checkMoments(String op, Tensor x, Tensor mean, Tensor rstd) {
        type(op, "x", x, DType.F32);
        vector(op, "mean", mean, x.rows());
        vector(op, "rstd", rstd, x.rows());
    }

    private static void epsilon(String op, double epsilon) {
        if (!(epsilon > 0)) {
            throw broken(op, "an epsilon above 0", epsilon);
        }
    }

    @Override
    public void layerNormPart(Tensor x, Tensor part) {
        type("layerNormPart", "x", x, DType.F32);
        vector("layerNormPart", "part", part, 2 * x.rows());
        kernels.layerNormPart(x, part);
    }

    @Override
    public void layerNormOfParts(
            Tensor parts,
            Tensor x,
            Tensor gain,
            Tensor bias,
            Tensor y,
            Tensor mean,
            Tensor rstd,
            double epsilon) {
        checkMoments("layerNormOfParts", x, mean, rstd);
        matrix("layerNormOfParts", "parts", parts, parts.rows(), 2 * x.rows());
        matrix("layerNormOfParts", "y", y, x.rows(), x.columns());
        vector("layerNormOfParts", "gain", gain, x.columns());
        vector("layerNormOfParts", "bias", bias, x.columns());
        epsilon("layerNormOfParts", epsilon);
        kernels.layerNormOfParts(parts, x, gain, bias, y, mean, rstd, epsilon);
    }

    @Override
    public void layerNormBackwardPart(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor part) {
        checkNorm("layerNormBackwardPart", x, dy, mean, rstd);
        vector("layerNormBackwardPart", "gain", gain, x.columns());
        vector("layerNormBackwardPart", "part", part, 2 * x.rows());
        kernels.layerNormBackwardPart(dy, x, gain, mean, rstd, part);
    }

    @Override
    public void layerNormBackwardOfParts(
            Tensor parts, Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        checkInputOfNorm("layerNormBackwardOfParts", dy, x, gain, mean, rstd, dx);
        matrix("layerNormBackwardOfParts", "parts", parts, parts.rows(), 2 * x.rows());
        kernels.layerNormBackwardOfParts(parts, dy, x, gain, mean, rstd, dx);
    }

    @Override
    public void rmsNorm(Tensor x, Tensor gain, Tensor y, Tensor r, double epsilon) {
        checkRmsNorm("rmsNorm", x, gain, r);
        result("rmsNorm", "y", y, x.rows(), x.columns(), writesBFloat16());
        epsilon("rmsNorm", epsilon);
        kernels.rmsNorm(x, gain, y, r, epsilon);
    }

    @Override
    public void rmsNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor r, Tensor dx, boolean accumulate) {
        checkRmsNorm("rmsNormBackwardInput", x, gain, r);
        matrix("rmsNormBackwardInput", "dy", dy, x.rows(), x.columns());
        matrix("rmsNormBackwardInput", "dx", dx, x.rows(), x.columns());
        kernels.rmsNormBackwardInput(dy, x, gain, r, dx, accumulate);
    }

    @Override
    public void rmsNormBackwardWeight(
            Tensor dy, Tensor x, Tensor r, Tensor dGain, TokenBlocks blocks) {
        checkRmsNorm("rmsNormBackwardWeight", x, dGain, r);
        matrix("rmsNormBackwardWeight", "dy", dy, x.rows(), x.columns());
        rowsOfUnit("rmsNormBackwardWeight", "x", x, blocks);
        kernels.rmsNormBackwardWeight(dy, x, r, dGain, blocks);
    }

    private static void checkRmsNorm(String op, Tensor x, Tensor gain, Tensor r) {
        type(op, "x", x, DType.F32);
        vector(op, "gain or dGain", gain, gain.columns());
        wholeHeads(op, "x", x, gain.columns());
        vector(op, "r", r, x.rows() * (x.columns() / gain.columns()));
    }

    private static void wholeHeads(String op, String name, Tensor x, int headSize) {
        if (headSize < 1 || x.columns() % headSize != 0) {
            throw broken(op, name + " with whole heads of " + headSize + " columns", shape(x));
        }
    }

    @Override
    public void biasGelu(Tensor pre, Tensor bias, Tensor y, Gelu form) {
        type("biasGelu", "pre", pre, DType.F32);
        vector("biasGelu", "bias", bias, pre.columns());
        matrix("biasGelu", "y", y, pre.rows(), pre.columns());
        kernels.biasGelu(pre, bias, y, form);
    }

    @Override
    public void geluBackward(Tensor pre, Tensor dy, Gelu form) {
        type("geluBackward", "pre", pre, DType.F32);
        matrix("geluBackward", "dy", dy, pre.rows(), pre.columns());
        kernels.geluBackward(pre, dy, form);
    }

    @Override
    public void geluRounded(Tensor pre, Tensor bias, Tensor y, Gelu form) {
        String op = "geluRounded";
        type(op, "pre", pre, DType.F32);
        vector(op, "bias", bias, pre.columns());
        matrix(op, "y", y, DType.BF16, pre.rows(), pre.columns());
        kernels.geluRounded(pre, bias, y, form);
    }

    @Override
    public void geluBackwardRounded(
            Tensor pre,
            Tensor bias,
            Tensor dy,
            Gelu form,
            Tensor dPre,
            @Nullable Tensor dBias,
            TokenBlocks blocks) {
        String op = "geluBackwardRounded";
        type(op, "pre", pre, DType.F32);
        rowsOfUnit(op, "pre", pre, blocks);
        vector(op, "bias", bias, pre.columns());
        matrix(op, "dy", dy, pre.rows(), pre.columns());
        matrix(op, "dPre", dPre, DType.BF16, pre.rows(), pre.columns());
        if (dBias != null) {
            vector(op, "dBias", dBias, pre.columns());
        }
        kernels.geluBackwardRounded(pre, bias, dy, form, dPre, dBias, blocks);
    }

    @Override
    public void swiGlu(Tensor gated, Tensor z) {
        matrix("swiGlu", "gated", gated, z.rows(), 2 * z.columns());
        result("swiGlu", "z", z, z.rows(), z.columns(), writesBFloat16());
        kernels.swiGlu(gated, z);
    }

    @Override
    public void swiGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        String op = "swiGluBackward";
        type(op, "dz", dz, DType.F32);
        matrix(op, "gated", gated, dz.rows(), 2 * dz.columns());
        result(op, "dGated", dGated, gated.rows(), gated.columns(), writesBFloat16());
        kernels.swiGluBackward(gated, dz, dGated);
    }

    @Override
    public void biasTanh(Tensor y, Tensor bias) {
        type("biasTanh", "y", y, DType.F32);
        vector("biasTanh", "bias", bias, y.columns());
        kernels.biasTanh(y, bias);
    }

    @Override
    public void tanhBackward(Tensor y, Tensor dy) {
        type("tanhBackward", "y", y, DType.F32);
        matrix("tanhBackward", "dy", dy, y.rows(), y.columns());
        kernels.tanhBackward(y, dy);
    }

    @Override
    public void geGlu(Tensor gated, Tensor z) {
        matrix("geGlu", "gated", gated, z.rows(), 2 * z.columns());
        matrix("geGlu", "z", z, z.rows(), z.columns());
        kernels.geGlu(gated, z);
    }

    @Override
    public void geGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        String op = "geGluBackward";
        matrix(op, "dz", dz, dz.rows(), dz.columns());
        matrix(op, "gated", gated, dz.rows(), 2 * dz.columns());
        matrix(op, "dGated", dGated, gated.rows(), gated.columns());
        kernels.geGluBackward(gated, dz, dGated);
    }

    @Override
    public void dropout(Tensor x, Tensor rowKeys, DropoutMask mask, Tensor y, boolean accumulate) {
        String op = "dropout";
        result(op, "x", x, x.rows(), x.columns(), writesBFloat16() && !accumulate);
        matrix(op, "y", y, x.type(), x.rows(), x.columns());
        matrix(op, "rowKeys", rowKeys, DType.I32, x.rows(), 2);
        dense(op, "rowKeys", rowKeys);
        kernels.dropout(x, rowKeys, mask, y, accumulate);
    }

    @Override
    public void rotate(Tensor x, Tensor turns, boolean back) {
        checkTurns("rotate", x, turns);
        kernels.rotate(x, turns, back);
    }

    @Override
    public void rotateNeighbours(Tensor x, Tensor turns, boolean back) {
        checkTurns("rotateNeighbours", x, turns);
        kernels.rotateNeighbours(x, turns, back);
    }

    private static void checkTurns(String op, Tensor x, Tensor turns) {
        type(op, "x", x, DType.F32);
        type(op, "turns", turns, DType.F32);
        if (turns.columns() % 2 != 0) {
            throw broken(op, "turns with as many cosines as sines", shape(turns));
        }
        wholeHeads(op, "x", x, turns.columns());
        if (turns.rows() < 1 || x.rows() % turns.rows() != 0) {
            throw broken(op, "rows that " + turns.rows() + " positions divide", shape(x));
        }
    }

    @Override
    public void attention(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        factor("attention", "qkv", qkv, multiply);
        checkAttention("attention", writesBFloat16(), qkv, y, logSumExp, shape, context, blocks);
        kernels.attention(multiply, qkv, y, logSumExp, shape, context, blocks);
    }

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
            TokenBlocks blocks) {
        checkBackward(multiply, qkv, y, logSumExp, dy, dQkv, shape, context, blocks);
        kernels.attentionBackward(multiply, qkv, y, logSumExp, dy, dQkv, shape, context, blocks);
    }

    @Override
    public void wholeAttentionBackward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        checkBackward(multiply, qkv, y, logSumExp, dy, dQkv, shape, context, blocks);
        if (blocks.tokens() != context) {
            throw broken("wholeAttentionBackward", "all " + context + " tokens", blocks);
        }
        kernels.wholeAttentionBackward(
                multiply, qkv, y, logSumExp, dy, dQkv, shape, context, blocks);
    }

    private void checkBackward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        String op = "attentionBackward";
        factor(op, "qkv", qkv, multiply);
        checkAttention(op, writesBFloat16(), qkv, y, logSumExp, shape, context, blocks);
        boolean halves = joinsProducts() && qkv.type() == DType.BF16;
        result(op, "dy", dy, y.rows(), y.columns(), halves);
        result(op, "dQkv", dQkv, qkv.rows(), qkv.columns(), halves);
    }

    private static void checkAttention(
            String op,
            boolean halves,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        if (blocks.firstToken() + blocks.tokens() > context) {
            throw broken(op, "a slice that ends at " + context + " or before", blocks);
        }
        if (shape.bidirectional() && blocks.tokens() != context) {
            throw broken(op, "all " + context + " tokens, which see each other", blocks);
        }
        result(op, "qkv", qkv, blocks.sequences() * context, shape.columns(), halves);
        rowsOfUnit(op, "y", y, blocks);
        matrix(op, "y", y, y.rows(), shape.queryColumns());
        matrix(op, "logSumExp", logSumExp, y.rows(), shape.heads());
    }

    @Override
    public void attentionToEarlier(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            EarlierKeys keys) {
        factor("attentionToEarlier", "q", q, multiply);
        checkEarlier("attentionToEarlier", q, keyValues, y, logSumExp, keys);
        kernels.attentionToEarlier(multiply, q, keyValues, y, logSumExp, keys);
    }

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
            EarlierKeys keys) {
        String op = "attentionToEarlierBackward";
        factor(op, "q", q, multiply);
        checkEarlier(op, q, keyValues, y, logSumExp, keys);
        matrix(op, "dy", dy, q.rows(), q.columns());
        matrix(op, "dq", dq, q.rows(), q.columns());
        matrix(op, "dKeyValues", dKeyValues, keyValues.rows(), keyValues.columns());
        kernels.attentionToEarlierBackward(
                multiply, q, keyValues, y, logSumExp, dy, dq, dKeyValues, keys);
    }

    private static void checkEarlier(
            String op, Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, EarlierKeys keys) {
        AttentionShape shape = keys.shape();
        matrix(op, "q", q, q.rows(), shape.queryColumns());
        matrix(op, "keyValues", keyValues, keyValues.rows(), 2 * shape.keyColumns());
        matrix(op, "y", y, q.rows(), q.columns());
        matrix(op, "logSumExp", logSumExp, q.rows(), shape.heads());
        if (keys.distance() < keyValues.rows()) {
            throw broken(
                    op,
                    "queries at least " + keyValues.rows() + " positions after the first key",
                    keys);
        }
    }

    @Override
    public void retentionStates(
            Tensor qkv, Tensor states, RetentionShape shape, int context, TokenBlocks blocks) {
        checkRetention("retentionStates", qkv, states, shape, context, blocks);
        kernels.retentionStates(qkv, states, shape, context, blocks);
    }

    @Override
    public void retention(
            Tensor qkv,
            Tensor states,
            Tensor y,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        checkRetention("retention", qkv, states, shape, context, blocks);
        matrix("retention", "y", y, blocks.rows(), shape.valueColumns());
        kernels.retention(qkv, states, y, shape, context, blocks);
    }

    @Override
    public void retentionBackward(
            Tensor qkv,
            Tensor states,
            Tensor dy,
            Tensor dQkv,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        String op = "retentionBackward";
        checkRetention(op, qkv, states, shape, context, blocks);
        matrix(op, "dy", dy, blocks.rows(), shape.valueColumns());
        matrix(op, "dQkv", dQkv, qkv.rows(), qkv.columns());
        kernels.retentionBackward(qkv, states, dy, dQkv, shape, context, blocks);
    }

    @Override
    public void retentionStateGradient(
            Tensor qkv,
            Tensor gradient,
            Tensor dy,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        String op = "retentionStateGradient";
        checkSlice(op, qkv, shape, context, blocks);
        matrix(op, "gradient", gradient, blocks.sequences(), shape.stateColumns());
        dense(op, "gradient", gradient);
        matrix(op, "dy", dy, blocks.rows(), shape.valueColumns());
        kernels.retentionStateGradient(qkv, gradient, dy, shape, context, blocks);
    }

    private static void checkRetention(
            String op,
            Tensor qkv,
            Tensor states,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        checkSlice(op, qkv, shape, context, blocks);
        int rows = (blocks.blocksPerSequence() + 1) * blocks.sequences();
        matrix(op, "states", states, rows, shape.stateColumns());
        dense(op, "states", states);
    }

    private static void checkSlice(
            String op, Tensor qkv, RetentionShape shape, int context, TokenBlocks blocks) {
        matrix(op, "qkv", qkv, blocks.sequences() * context, shape.columns());
        boolean alone = context == blocks.tokens();
        if (!alone && blocks.firstToken() + blocks.tokens() > context) {
            throw broken(op, "a slice inside " + context + " tokens", blocks);
        }
    }

    @Override
    public void gatedHeadNorm(Tensor x, @Nullable Tensor gate, Tensor y, Tensor r, double epsilon) {
        checkGate("gatedHeadNorm", x, gate, r);
        matrix("gatedHeadNorm", "y", y, x.rows(), x.columns());
        kernels.gatedHeadNorm(x, gate, y, r, epsilon);
    }

    @Override
    public void gatedHeadNormBackward(
            Tensor dy,
            Tensor x,
            @Nullable Tensor gate,
            Tensor r,
            Tensor dx,
            @Nullable Tensor dGate) {
        String op = "gatedHeadNormBackward";
        checkGate(op, x, gate, r);
        matrix(op, "dy", dy, x.rows(), x.columns());
        matrix(op, "dx", dx, x.rows(), x.columns());
        if ((gate == null) != (dGate == null)) {
            throw broken(op, "gates and their gradient, or neither", "one of them");
        }
        if (dGate != null) {
            matrix(op, "dGate", dGate, x.rows(), x.columns());
        }
        kernels.gatedHeadNormBackward(dy, x, gate, r, dx, dGate);
    }

    private static void checkGate(String op, Tensor x, @Nullable Tensor gate, Tensor r) {
        matrix(op, "x", x, x.rows(), x.columns());
        matrix(op, "r", r, x.rows(), r.columns());
        if (gate != null) {
            matrix(op, "gate", gate, x.rows(), x.columns());
        }
        if (x.columns() % r.columns() != 0) {
            throw broken(op, "whole heads for " + r.columns() + " norms in a row", shape(x));
        }
    }

    @Override
    public void softmaxPart(
            Tensor logits, Tensor targets, TokenRange range, Tensor part, boolean gradient) {
        checkLogits("softmaxPart", logits, targets, range);
        vector("softmaxPart", "part", part, 3 * logits.rows());
        kernels.softmaxPart(logits, targets, range, part, gradient);
    }

    @Override
    public void crossEntropy(
            Tensor parts,
            int shard,
            Tensor logits,
            Tensor targets,
            TokenRange range,
            Tensor losses,
            float gradientScale) {
        checkLogits("crossEntropy", logits, targets, range);
        matrix("crossEntropy", "parts", parts, parts.rows(), 3 * logits.rows());
        if (shard < 0 || shard >= parts.rows()) {
            throw broken("crossEntropy", "a shard of 0 to " + (parts.rows() - 1), shard);
        }
        vector("crossEntropy", "losses", losses, logits.rows());
        kernels.crossEntropy(parts, shard, logits, targets, range, losses, gradientScale);
    }

    @Override
    public void crossEntropyOfRows(
            Tensor logits, Tensor targets, Tensor losses, float gradientScale, Tensor dLogits) {
        String op = "crossEntropyOfRows";
        result(op, "logits", logits, logits.rows(), logits.columns(), joinsProducts());
        matrix(op, "targets", targets, DType.I32, 1, logits.rows());
        vector(op, "losses", losses, logits.rows());
        boolean halves = writesBFloat16() || logits.type() == DType.BF16;
        result(op, "dLogits", dLogits, logits.rows(), logits.columns(), halves);
        long logitsRow = (long) logits.stride() * logits.type().bytes();
        if (dLogits.offsetBytes() != logits.offsetBytes()
                || (long) dLogits.stride() * dLogits.type().bytes() != logitsRow) {
            throw broken(op, "dLogits in the rows of the logits", shape(dLogits));
        }
        kernels.crossEntropyOfRows(logits, targets, losses, gradientScale, dLogits);
    }

    private static void checkLogits(String op, Tensor logits, Tensor targets, TokenRange range) {
        type(op, "logits", logits, DType.F32);
        matrix(op, "targets", targets, DType.I32, 1, logits.rows());
        tokensOf(op, "columns", range, logits.columns());
    }

    @Override
    public void encode(RowCodec codec, Tensor x, Tensor coded) {
        type("encode", "x", x, DType.F32);
        matrix("encode", "coded", coded, DType.I32, x.rows(), codec.words(x.columns()));
        kernels.encode(codec, x, coded);
    }

    @Override
    public void decode(RowCodec codec, Tensor coded, Tensor x) {
        type("decode", "x", x, DType.F32);
        matrix("decode", "coded", coded, DType.I32, x.rows(), codec.words(x.columns()));
        kernels.decode(codec, coded, x);
    }

    @Override
    public boolean foldGradient(Tensor gradient, Tensor sum, float limit, boolean accumulate) {
        checkFold("foldGradient", gradient, sum);
        return kernels.foldGradient(gradient, sum, limit, accumulate);
    }

    @Override
    public void unfoldGradient(Tensor sum, Tensor gradient) {
        checkFold("unfoldGradient", gradient, sum);
        kernels.unfoldGradient(sum, gradient);
    }

    private static void checkFold(String op, Tensor gradient, Tensor sum) {
        type(op, "gradient", gradient, DType.F32);
        dense(op, "gradient", gradient);
        matrix(op, "sum", sum, DType.I64, gradient.rows(), gradient.columns());
        dense(op, "sum", sum);
    }

    @Override
    public void zero(Tensor x) {
        kernels.zero(x);
    }

    @Override
    public void add(Tensor x, Tensor y) {
        if (y.type() != DType.I64) {
            type("add", "y", y, DType.F32);
        }
        matrix("add", "x", x, y.type(), y.rows(), y.columns());
        kernels.add(x, y);
    }

    @Override
    public void subtract(Tensor x, Tensor y) {
        type("subtract", "y", y, DType.F32);
        matrix("subtract", "x", x, y.rows(), y.columns());
        kernels.subtract(x, y);
    }

    @Override
    public void blend(float a, Tensor x, float b, Tensor y) {
        type("blend", "x", x, DType.F32);
        type("blend", "y", y, DType.F32);
        matrix("blend", "x", x, y.rows(), y.columns());
        kernels.blend(a, x, b, y);
    }

    @Override
    public void copy(Tensor x, Tensor y) {
        matrix("copy", "x", x, x.type(), y.rows(), y.columns());
        if (y.type() == DType.I8) {
            type("copy", "x", x, DType.F32);
            wholeRows("copy", "y", y);
        } else if (x.type().isScaled()
                || y.type().isScaled()
                || (x.type() == DType.I32) != (y.type() == DType.I32)
                || (x.type() == DType.I64) != (y.type() == DType.I64)) {
            throw broken(
                    "copy",
                    "floats to floats or integers to integers",
                    x.type() + " to " + y.type());
        }
        kernels.copy(x, y);
    }

    @Override
    public double squaredNorm(Tensor x) {
        checkNorm(x);
        return kernels.squaredNorm(x);
    }

    @Override
    public double[] squaredNorms(List<Tensor> tensors) {
        tensors.forEach(CheckedKernels::checkNorm);
        return kernels.squaredNorms(tensors);
    }

    private static void checkNorm(Tensor x) {
        type("squaredNorm", "x", x, DType.F32);
        dense("squaredNorm", "x", x);
    }

    @Override
    public boolean allFinite(Tensor x) {
        result("allFinite", "x", x, x.rows(), x.columns(), writesBFloat16());
        return kernels.allFinite(x);
    }

    @Override
    public boolean watchFinite(Tensor x) {
        result("watchFinite", "x", x, x.rows(), x.columns(), writesBFloat16());
        return kernels.watchFinite(x);
    }

    @Override
    public boolean watchFiniteLater(Tensor x) {
        result("watchFiniteLater", "x", x, x.rows(), x.columns(), writesBFloat16());
        return kernels.watchFiniteLater(x);
    }

    @Override
    public void watchNone() {
        kernels.watchNone();
    }

    @Override
    public int firstNotFinite() {
        return kernels.firstNotFinite();
    }

    @Override
    public void adamW(Tensor weight, Tensor gradient, Tensor m, Tensor v, AdamWStep step) {
        checkUpdate(weight, gradient, m, v);
        checkCount(step);
        kernels.adamW(weight, gradient, m, v, step);
    }

    @Override
    public void adamW(List<AdamWParameter> parameters, AdamWStep step) {
        for (AdamWParameter p : parameters) {
            checkUpdate(p.weight(), p.gradient(), p.m(), p.v());
            Tensor rounded = p.rounded();
            if (rounded != null) {
                matrix(
                        "adamW",
                        "rounded",
                        rounded,
                        rounded.type() == DType.F16 ? DType.F16 : DType.BF16,
                        p.weight().rows(),
                        p.weight().columns());
                dense("adamW", "rounded", rounded);
            }
        }
        checkCount(step);
        kernels.adamW(parameters, step);
    }

    private static void checkUpdate(Tensor weight, Tensor gradient, Tensor m, Tensor v) {
        type("adamW", "weight", weight, DType.F32);
        dense("adamW", "weight", weight);
        matrix("adamW", "gradient", gradient, weight.rows(), weight.columns());
        dense("adamW", "gradient", gradient);
        if (m.type().isDynamic()) {
            matrix("adamW", "a flat weight", weight, 1, weight.columns());
            checkBlocks("m", m, DType.DYNAMIC8, weight);
            checkBlocks("v", v, DType.DYNAMIC8_POSITIVE, weight);
            return;
        }
        matrix("adamW", "m", m, weight.rows(), weight.columns());
        dense("adamW", "m", m);
        matrix("adamW", "v", v, weight.rows(), weight.columns());
        dense("adamW", "v", v);
    }

    private static void checkBlocks(String name, Tensor moment, DType type, Tensor weight) {
        int blocks = Math.ceilDiv(weight.columns(), Dynamic8.BLOCK);
        matrix("adamW", name, moment, type, blocks, Dynamic8.BLOCK);
        wholeRows("adamW", name, moment);
    }

    private static void checkCount(AdamWStep step) {
        if (step.t() < 1) {
            throw broken("adamW", "an update count from 1", step.t());
        }
    }

    @Override
    public void finish() {
        kernels.finish();
    }
}
