package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.kernels.IndexRules;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The op table on a GPU: each op starts a kernel or two on the device's stream and returns. Expects
 * arguments that were checked.
 */
final class GpuKernels implements Kernels {
    private static final int ROW_THREADS = 128;
    private static final int ROWS_PER_BLOCK = ROW_THREADS / 32;
    private static final int LOGITS_THREADS = 256;
    private static final int ROW_OF_LOGITS_THREADS = 1024;

    private final GpuContext gpu;
    private final Launch launch;
    private final GpuProducts products;
    private final GpuAttention attention;
    private final GpuElements elements;
    private final GpuSums sums;
    private final GpuOptimizer optimizer;
    private final GpuCodecs codecs;
    private final GpuModule.Function embedding;
    private final GpuModule.Function layerNorm;
    private final GpuModule.Function layerNormRounded;
    private final GpuModule.Function layerNormBackwardInput;
    private final GpuModule.Function layerNormBackwardInputOfHalves;
    private final GpuModule.Function rmsNorm;
    private final GpuModule.Function rmsNormRounded;
    private final GpuModule.Function rmsNormBackwardInput;
    private final GpuModule.Function softmaxPart;
    private final GpuModule.Function crossEntropy;
    private final GpuModule.Function crossEntropyOfRows;
    private final GpuModule.Function crossEntropyOfRowsRounded;
    private final GpuModule.Function crossEntropyOfHalves;

    GpuKernels(
            GpuContext gpu,
            GpuModule module,
            Launch launch,
            GpuProducts products,
            GpuAttention attention,
            GpuElements elements,
            GpuSums sums,
            GpuOptimizer optimizer) {
        this.gpu = gpu;
        this.launch = launch;
        this.codecs = new GpuCodecs(module, launch);
        this.products = products;
        this.attention = attention;
        this.elements = elements;
        this.sums = sums;
        this.optimizer = optimizer;
        embedding = module.function("embedding");
        layerNorm = module.function("layerNorm");
        layerNormRounded = module.function("layerNormRounded");
        layerNormBackwardInput = module.function("layerNormBackwardInput");
        layerNormBackwardInputOfHalves = module.function("layerNormBackwardInputOfHalves");
        rmsNorm = module.function("rmsNorm");
        rmsNormRounded = module.function("rmsNormRounded");
        rmsNormBackwardInput = module.function("rmsNormBackwardInput");
        softmaxPart = module.function("softmaxPart");
        crossEntropy = module.function("crossEntropy");
        crossEntropyOfRows = module.function("crossEntropyOfRows");
        crossEntropyOfRowsRounded = module.function("crossEntropyOfRowsRounded");
        crossEntropyOfHalves = module.function("crossEntropyOfHalves");
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
        products.gemm(multiply, transposeA, a, transposeB, b, c, accumulate);
    }

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        products.weightGradient(multiply, x, dy, dWeight, blocks);
    }

    @Override
    public void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks) {
        sums.biasGradient(dy, dBias, blocks);
    }

    @Override
    public boolean writesBFloat16() {
        return true;
    }

    @Override
    public boolean joinsProducts() {
        return products.joins();
    }

    @Override
    public void gemmThen(Tensor a, boolean transposeB, Tensor b, Epilogue epilogue, Tensor c) {
        if (products.joins()) {
            products.gemmThen(a, transposeB, b, epilogue, c);
        } else {
            Kernels.super.gemmThen(a, transposeB, b, epilogue, c);
        }
    }

    @Override
    public void biasGradientRounded(Tensor dy, Tensor dBias, TokenBlocks blocks, Tensor y) {
        sums.biasGradientRounded(dy, dBias, blocks, y);
    }

    @Override
    public void addBias(Tensor y, Tensor bias) {
        elements.addBias(y, bias);
    }

    @Override
    public void addBiasRounded(Tensor y, Tensor bias, Tensor rounded) {
        elements.addBiasRounded(y, bias, rounded);
    }

    @Override
    public void addBiasAndResidual(Tensor y, Tensor bias, Tensor residual) {
        elements.addBiasAndResidual(y, bias, residual);
    }

    /** Of what the host wrote: the GPU's own copy would have to be waited for. */
    private static void inRange(String op, String name, Tensor indices, int limit) {
        if (indices.buffer() instanceof GpuBuffer buffer) {
            IndexRules.inRange(op, name, indices, buffer.indices(indices), limit);
        } else {
            IndexRules.inRange(op, name, indices, limit);
        }
    }

    @Override
    public void embedding(Tensor tokens, TokenRange range, Tensor table, Tensor y) {
        inRange("embedding", "tokens", tokens, range.vocabulary());
        launch.begin().vector(tokens).range(range, table.rows()).view(table).view(y);
        launch.integer(y.columns()).run(embedding, y.rows(), ROW_THREADS);
    }

    @Override
    public void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks) {
        inRange("embeddingBackward", "tokens", tokens, range.vocabulary());
        sums.embeddingBackward(dy, tokens, range, dTable, blocks);
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
        launch.begin().view(x).vector(gain).vector(bias).view(y).vector(mean).vector(rstd);
        launch.number((float) epsilon);
        overRows(y.type() == DType.BF16 ? layerNormRounded : layerNorm, x.rows(), x.columns());
    }

    @Override
    public void layerNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        launch.begin().view(dy).view(x).vector(gain).vector(mean).vector(rstd).view(dx);
        boolean halves = dy.type() == DType.BF16;
        overRows(
                halves ? layerNormBackwardInputOfHalves : layerNormBackwardInput,
                x.rows(),
                x.columns());
    }

    /** A warp for each row. */
    private void overRows(GpuModule.Function kernel, int rows, int columns) {
        launch.integer(rows).integer(columns);
        launch.run(kernel, Math.ceilDiv(rows, ROWS_PER_BLOCK), ROW_THREADS);
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
        if (GpuSums.areTogether(dy.columns(), blocks)) {
            sums.layerNormBackward(dy, x, gain, mean, rstd, dx, dGain, dBias, blocks);
        } else {
            layerNormBackwardInput(dy, x, gain, mean, rstd, dx);
            layerNormBackwardWeight(dy, x, mean, rstd, dGain, dBias, blocks);
        }
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
        sums.layerNormBackwardWeight(dy, x, mean, rstd, dGain, dBias, blocks);
    }

    @Override
    public void rmsNorm(Tensor x, Tensor gain, Tensor y, Tensor r, double epsilon) {
        int heads = x.columns() / gain.columns();
        launch.begin().view(x).vector(gain).view(y).vector(r).number((float) epsilon);
        launch.integer(heads);
        overRows(
                y.type() == DType.BF16 ? rmsNormRounded : rmsNorm,
                x.rows() * heads,
                gain.columns());
    }

    @Override
    public void rmsNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor r, Tensor dx, boolean accumulate) {
        int heads = x.columns() / gain.columns();
        launch.begin().view(dy).view(x).vector(gain).vector(r).view(dx);
        launch.integer(accumulate ? 1 : 0).integer(heads);
        overRows(rmsNormBackwardInput, x.rows() * heads, gain.columns());
    }

    @Override
    public void rmsNormBackwardWeight(
            Tensor dy, Tensor x, Tensor r, Tensor dGain, TokenBlocks blocks) {
        sums.rmsNormBackwardWeight(dy, x, r, dGain, blocks);
    }

    @Override
    public void biasGelu(Tensor pre, Tensor bias, Tensor y, Gelu form) {
        elements.biasGelu(pre, bias, y, form);
    }

    @Override
    public void geluBackward(Tensor pre, Tensor dy, Gelu form) {
        elements.geluBackward(pre, dy, form);
    }

    @Override
    public void geluRounded(Tensor pre, Tensor bias, Tensor y, Gelu form) {
        elements.geluRounded(pre, bias, y, form);
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
        sums.geluBackwardRounded(pre, bias, dy, form, dPre, dBias, blocks);
    }

    @Override
    public void swiGlu(Tensor gated, Tensor z) {
        elements.swiGlu(gated, z);
    }

    @Override
    public void swiGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        elements.swiGluBackward(gated, dz, dGated);
    }

    @Override
    public void dropout(Tensor x, Tensor rowKeys, DropoutMask mask, Tensor y, boolean accumulate) {
        elements.dropout(x, rowKeys, mask, y, accumulate);
    }

    @Override
    public void rotate(Tensor x, Tensor turns, boolean back) {
        elements.rotate(x, turns, back);
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
        attention.forward(multiply, qkv, y, logSumExp, shape, context, blocks);
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
        attention.backward(multiply, qkv, y, logSumExp, dy, dQkv, shape, context, blocks);
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
        attention.wholeBackward(multiply, qkv, y, logSumExp, dy, dQkv, shape, context, blocks);
    }

    @Override
    public void attentionToEarlier(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            EarlierKeys keys) {
        attention.forwardToEarlier(multiply, q, keyValues, y, logSumExp, keys);
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
        attention.backwardToEarlier(multiply, q, keyValues, y, logSumExp, dy, dq, dKeyValues, keys);
    }

    @Override
    public void softmaxPart(
            Tensor logits, Tensor targets, TokenRange range, Tensor part, boolean gradient) {
        inRange("softmaxPart", "targets", targets, range.vocabulary());
        launch.begin().view(logits).vector(targets).range(range, logits.columns()).vector(part);
        launch.integer(gradient ? 1 : 0).run(softmaxPart, logits.rows(), LOGITS_THREADS);
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
        launch.begin().view(parts).integer(parts.rows()).integer(shard).view(logits);
        launch.vector(targets).range(range, logits.columns()).vector(losses);
        launch.number(gradientScale).run(crossEntropy, logits.rows(), LOGITS_THREADS);
    }

    @Override
    public void crossEntropyOfRows(
            Tensor logits, Tensor targets, Tensor losses, float gradientScale, Tensor dLogits) {
        inRange("crossEntropyOfRows", "targets", targets, logits.columns());
        launch.begin().view(logits).vector(targets).integer(logits.columns()).vector(losses);
        launch.number(gradientScale).view(dLogits);
        GpuModule.Function kernel = crossEntropyOfRows;
        if (logits.type() == DType.BF16) {
            kernel = crossEntropyOfHalves;
        } else if (dLogits.type() == DType.BF16) {
            kernel = crossEntropyOfRowsRounded;
        }
        launch.run(kernel, logits.rows(), ROW_OF_LOGITS_THREADS);
    }

    @Override
    public void encode(RowCodec codec, Tensor x, Tensor coded) {
        codecs.encode(codec, x, coded);
    }

    @Override
    public void decode(RowCodec codec, Tensor coded, Tensor x) {
        codecs.decode(codec, coded, x);
    }

    @Override
    public boolean foldGradient(Tensor gradient, Tensor sum, float limit, boolean accumulate) {
        return sums.foldGradient(gradient, sum, limit, accumulate);
    }

    @Override
    public void unfoldGradient(Tensor sum, Tensor gradient) {
        elements.unfoldGradient(sum, gradient);
    }

    @Override
    public void zero(Tensor x) {
        elements.zero(x);
    }

    @Override
    public void add(Tensor x, Tensor y) {
        elements.add(x, y);
    }

    @Override
    public void subtract(Tensor x, Tensor y) {
        elements.subtract(x, y);
    }

    @Override
    public void blend(float a, Tensor x, float b, Tensor y) {
        elements.blend(a, x, b, y);
    }

    @Override
    public void copy(Tensor x, Tensor y) {
        elements.copy(x, y);
    }

    @Override
    public double squaredNorm(Tensor x) {
        return sums.squaredNorms(List.of(x))[0];
    }

    @Override
    public double[] squaredNorms(List<Tensor> tensors) {
        return sums.squaredNorms(tensors);
    }

    @Override
    public boolean allFinite(Tensor x) {
        return sums.allFinite(x);
    }

    @Override
    public boolean watchFinite(Tensor x) {
        return sums.watchFinite(x);
    }

    @Override
    public boolean watchFiniteLater(Tensor x) {
        return sums.watchFiniteLater(x);
    }

    @Override
    public void watchNone() {
        sums.watchNone();
    }

    @Override
    public int firstNotFinite() {
        return sums.firstNotFinite();
    }

    @Override
    public void adamW(Tensor weight, Tensor gradient, Tensor m, Tensor v, AdamWStep step) {
        optimizer.adamW(weight, gradient, m, v, step);
    }

    @Override
    public void adamW(List<AdamWParameter> parameters, AdamWStep step) {
        optimizer.adamW(parameters, step);
    }

    @Override
    public void finish() {
        gpu.finish();
    }
}
