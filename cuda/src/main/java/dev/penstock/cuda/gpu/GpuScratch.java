package dev.penstock.cuda.gpu;

import dev.penstock.cuda.cublas.Cublas;
import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.kernels.SilentKernels;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What the kernels of a GPU hold for themselves. */
public final class GpuScratch extends SilentKernels {
    /** Of a GPU that is not here: what cuBLAS wants most. */
    private static final String NEWEST = "9.0";

    /** Of cuBLAS; 0 where our own kernels multiply, which need nothing. */
    private final long workspace;

    private final boolean joins;
    private long left;
    private long right;
    private long bias;
    private long partialSums;
    private long attentionSums;
    private long updates;

    private GpuScratch(long workspace, boolean joins) {
        this.workspace = workspace;
        this.joins = joins;
    }

    /**
     * Of a device with these settings. Where this machine has no GPU, of one elsewhere, with a
     * cuBLAS unless the settings want our own products.
     */
    public static GpuScratch of(DeviceSettings settings) {
        if (settings.gemm() == DeviceSettings.Gemm.KERNELS) {
            return new GpuScratch(0, false);
        }
        return switch (GpuProbe.run()) {
            case Gpus.None _ -> new GpuScratch(CublasProducts.workspaceBytes(NEWEST), true);
            case Gpus.Found(var gpus) ->
                    switch (Cublas.probe()) {
                        case Cublas.Probe.Missing _ -> new GpuScratch(0, false);
                        case Cublas.Probe.Found(var libraries) -> {
                            var gpu = gpus.get(Math.min(settings.gpu(), gpus.size() - 1));
                            yield new GpuScratch(
                                    CublasProducts.workspaceBytes(gpu.computeCapability()),
                                    libraries.getFirst().joins());
                        }
                    };
        };
    }

    @Override
    public long bytes() {
        return workspace + left + right + bias + partialSums + attentionSums + updates;
    }

    @Override
    public CountedKernels anew() {
        return new GpuScratch(workspace, joins);
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
        if (workspace > 0 && multiply == DType.BF16) {
            left = Math.max(left, narrowBytes(a));
            right = Math.max(right, narrowBytes(b));
        }
    }

    private static long narrowBytes(Tensor factor) {
        return factor.type() == DType.BF16 ? 0 : CublasProducts.narrowBytes(factor);
    }

    @Override
    public boolean joinsProducts() {
        return joins;
    }

    @Override
    public void gemmThen(Tensor a, boolean transposeB, Tensor b, Epilogue epilogue, Tensor c) {
        if (epilogue instanceof Epilogue.Bias || epilogue instanceof Epilogue.BiasAndGelu) {
            bias = Math.max(bias, (long) DType.BF16.bytes() * c.columns());
        }
    }

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        gemm(multiply, true, x, false, dy, dWeight, true);
    }

    @Override
    public void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks) {
        partialSums = Math.max(partialSums, GpuSums.biasBytes(dy, blocks));
    }

    @Override
    public void biasGradientRounded(Tensor dy, Tensor dBias, TokenBlocks blocks, Tensor y) {
        biasGradient(dy, dBias, blocks);
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
        if (dBias != null) {
            biasGradient(dy, dBias, blocks);
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
        partialSums = Math.max(partialSums, GpuSums.normBytes(dy, blocks));
    }

    @Override
    public void rmsNormBackwardWeight(
            Tensor dy, Tensor x, Tensor r, Tensor dGain, TokenBlocks blocks) {
        partialSums = Math.max(partialSums, GpuSums.biasBytes(dGain, blocks));
    }

    @Override
    public double squaredNorm(Tensor x) {
        return squaredNorms(List.of(x))[0];
    }

    @Override
    public double[] squaredNorms(List<Tensor> tensors) {
        partialSums = Math.max(partialSums, GpuSums.squaredNormBytes(tensors));
        return new double[tensors.size()];
    }

    @Override
    public void adamW(List<AdamWParameter> parameters, AdamWStep step) {
        updates = Math.max(updates, GpuOptimizer.tableBytes(parameters));
    }

    @Override
    public void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks) {
        partialSums = Math.max(partialSums, GpuSums.embeddingBytes(dy, dTable));
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
        attentionSums =
                Math.max(
                        attentionSums,
                        GpuAttention.backwardBytes(multiply, qkv.type(), y, dy, shape.heads()));
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
        attentionSums =
                Math.max(
                        attentionSums,
                        GpuAttention.backwardBytes(
                                multiply, q.type(), y, dy, keys.shape().heads()));
    }
}
