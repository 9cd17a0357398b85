package dev.penstock.cuda.kernels;

import static dev.penstock.cuda.kernels.TensorRules.broken;
import static dev.penstock.cuda.kernels.TensorRules.dense;
import static dev.penstock.cuda.kernels.TensorRules.factor;
import static dev.penstock.cuda.kernels.TensorRules.matrix;
import static dev.penstock.cuda.kernels.TensorRules.rowsOfUnit;
import static dev.penstock.cuda.kernels.TensorRules.type;
import static dev.penstock.cuda.kernels.TensorRules.vector;

import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import java.util.List;

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
        factor("gemm", "b", b, multiply);
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
        type("biasGradient", "dy", dy, DType.F32);
        rowsOfUnit("biasGradient", "dy", dy, blocks);
        vector("biasGradient", "dBias", dBias, dy.columns());
        kernels.biasGradient(dy, dBias, blocks);
    }

    @Override
    public void addBias(Tensor y, Tensor bias) {
        type("addBias", "y", y, DType.F32);
        vector("addBias", "bias", bias, y.columns());
        kernels.addBias(y, bias);
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
        checkEmbedding("embedding", tokens, range, table, y);
        kernels.embedding(tokens, range, table, y);
    }

    @Override
    public void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks) {
        rowsOfUnit("embeddingBackward", "dy", dy, blocks);
        checkEmbedding("embeddingBackward", tokens, range, dTable, dy);
        kernels.embeddingBackward(dy, tokens, range, dTable, blocks);
    }

    private static void checkEmbedding(
            String op, Tensor tokens, TokenRange range, Tensor table, Tensor y) {
        type(op, "the token table", table, DType.F32);
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
    public void layerNorm(Tensor x, Tensor gain, Tensor bias, Tensor y, Tensor mean, Tensor rstd) {
        checkNorm("layerNorm", x, y, mean, rstd);
        vector("layerNorm", "gain", gain, x.columns());
        vector("layerNorm", "bias", bias, x.columns());
        kernels.layerNorm(x, gain, bias, y, mean, rstd);
    }

    @Override
    public void layerNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        checkNorm("layerNormBackwardInput", x, dy, mean, rstd);
        vector("layerNormBackwardInput", "gain", gain, x.columns());
        matrix("layerNormBackwardInput", "dx", dx, x.rows(), x.columns());
        kernels.layerNormBackwardInput(dy, x, gain, mean, rstd, dx);
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
        rowsOfUnit("layerNormBackwardWeight", "x", x, blocks);
        vector("layerNormBackwardWeight", "dGain", dGain, x.columns());
        vector("layerNormBackwardWeight", "dBias", dBias, x.columns());
        kernels.layerNormBackwardWeight(dy, x, mean, rstd, dGain, dBias, blocks);
    }

    private static void checkNorm(String op, Tensor x, Tensor y, Tensor mean, Tensor rstd) {
        type(op, "x", x, DType.F32);
        matrix(op, "y or dy", y, x.rows(), x.columns());
        vector(op, "mean", mean, x.rows());
        vector(op, "rstd", rstd, x.rows());
    }

    @Override
    public void biasGelu(Tensor pre, Tensor bias, Tensor y) {
        type("biasGelu", "pre", pre, DType.F32);
        vector("biasGelu", "bias", bias, pre.columns());
        matrix("biasGelu", "y", y, pre.rows(), pre.columns());
        kernels.biasGelu(pre, bias, y);
    }

    @Override
    public void geluBackward(Tensor pre, Tensor dy) {
        type("geluBackward", "pre", pre, DType.F32);
        matrix("geluBackward", "dy", dy, pre.rows(), pre.columns());
        kernels.geluBackward(pre, dy);
    }

    @Override
    public void attention(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            int heads,
            int context,
            TokenBlocks blocks) {
        factor("attention", "qkv", qkv, multiply);
        checkAttention("attention", qkv, y, logSumExp, heads, context, blocks);
        kernels.attention(multiply, qkv, y, logSumExp, heads, context, blocks);
    }

    @Override
    public void attentionBackward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            int heads,
            int context,
            TokenBlocks blocks) {
        factor("attentionBackward", "qkv", qkv, multiply);
        checkAttention("attentionBackward", qkv, y, logSumExp, heads, context, blocks);
        matrix("attentionBackward", "dy", dy, y.rows(), y.columns());
        matrix("attentionBackward", "dQkv", dQkv, qkv.rows(), qkv.columns());
        kernels.attentionBackward(multiply, qkv, y, logSumExp, dy, dQkv, heads, context, blocks);
    }

    private static void checkAttention(
            String op,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            int heads,
            int context,
            TokenBlocks blocks) {
        int d = y.columns();
        if (heads < 1 || d % heads != 0) {
            throw broken(op, "a width that " + heads + " heads divide", d);
        }
        if (blocks.firstToken() + blocks.tokens() > context) {
            throw broken(op, "a slice that ends at " + context + " or before", blocks);
        }
        matrix(op, "qkv", qkv, blocks.sequences() * context, 3 * d);
        rowsOfUnit(op, "y", y, blocks);
        type(op, "y", y, DType.F32);
        matrix(op, "logSumExp", logSumExp, y.rows(), heads);
    }

    @Override
    public void attentionToEarlier(
            DType multiply, Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, int heads) {
        factor("attentionToEarlier", "q", q, multiply);
        checkEarlier("attentionToEarlier", q, keyValues, y, logSumExp, heads);
        kernels.attentionToEarlier(multiply, q, keyValues, y, logSumExp, heads);
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
            int heads) {
        String op = "attentionToEarlierBackward";
        factor(op, "q", q, multiply);
        checkEarlier(op, q, keyValues, y, logSumExp, heads);
        matrix(op, "dy", dy, q.rows(), q.columns());
        matrix(op, "dq", dq, q.rows(), q.columns());
        matrix(op, "dKeyValues", dKeyValues, keyValues.rows(), keyValues.columns());
        kernels.attentionToEarlierBackward(
                multiply, q, keyValues, y, logSumExp, dy, dq, dKeyValues, heads);
    }

    private static void checkEarlier(
            String op, Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, int heads) {
        int d = q.columns();
        if (heads < 1 || d % heads != 0) {
            throw broken(op, "a width that " + heads + " heads divide", d);
        }
        type(op, "q", q, DType.F32);
        matrix(op, "keyValues", keyValues, keyValues.rows(), 2 * d);
        matrix(op, "y", y, q.rows(), d);
        matrix(op, "logSumExp", logSumExp, q.rows(), heads);
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

    private static void checkLogits(String op, Tensor logits, Tensor targets, TokenRange range) {
        type(op, "logits", logits, DType.F32);
        matrix(op, "targets", targets, DType.I32, 1, logits.rows());
        tokensOf(op, "columns", range, logits.columns());
    }

    @Override
    public void zero(Tensor x) {
        kernels.zero(x);
    }

    @Override
    public void add(Tensor x, Tensor y) {
        type("add", "y", y, DType.F32);
        matrix("add", "x", x, y.rows(), y.columns());
        kernels.add(x, y);
    }

    @Override
    public void copy(Tensor x, Tensor y) {
        matrix("copy", "x", x, x.type(), y.rows(), y.columns());
        if ((x.type() == DType.I32) != (y.type() == DType.I32)) {
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
        type("allFinite", "x", x, DType.F32);
        return kernels.allFinite(x);
    }

    @Override
    public boolean watchFinite(Tensor x) {
        type("watchFinite", "x", x, DType.F32);
        return kernels.watchFinite(x);
    }

    @Override
    public int firstNotFinite() {
        return kernels.firstNotFinite();
    }

    @Override
    public void adamW(Tensor weight, Tensor gradient, Tensor m, Tensor v, AdamWStep step) {
        type("adamW", "weight", weight, DType.F32);
        dense("adamW", "weight", weight);
        matrix("adamW", "gradient", gradient, weight.rows(), weight.columns());
        dense("adamW", "gradient", gradient);
        matrix("adamW", "m", m, weight.rows(), weight.columns());
        dense("adamW", "m", m);
        matrix("adamW", "v", v, weight.rows(), weight.columns());
        dense("adamW", "v", v);
        if (step.t() < 1) {
            throw broken("adamW", "an update count from 1", step.t());
        }
        kernels.adamW(weight, gradient, m, v, step);
    }

    @Override
    public void finish() {
        kernels.finish();
    }
}
