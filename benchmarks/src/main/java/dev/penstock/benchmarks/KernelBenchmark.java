package dev.penstock.benchmarks;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.device.TopK;
import dev.penstock.cuda.device.WireCodec;
import dev.penstock.runtime.speed.DeviceRates;
import dev.penstock.runtime.speed.Repeated;
import java.io.PrintStream;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * The CPU device's ops at the sizes of one layer of GPT-2 124M: GFLOP/s compared with the FMA peak
 * and GB/s compared with a copy, both measured in the same run.
 *
 * <p>Arguments: threads, {@code java|onednn}, tokens, width, heads; all optional.
 */
public final class KernelBenchmark {
    private static final long NANOS_PER_OP = 400_000_000L;

    private final Device device;
    private final Kernels k;
    private final PrintStream out;
    private final int n;
    private final int d;
    private final int heads;
    private final TokenBlocks blocks;
    private final double peakGflops;
    private final double copyGigabytes;

    private KernelBenchmark(
            Device device, PrintStream out, int threads, int tokens, int width, int heads) {
        this.device = device;
        this.k = device.kernels();
        this.out = out;
        this.n = tokens;
        this.d = width;
        this.heads = heads;
        this.blocks = new TokenBlocks(1, tokens, 0, 128);
        this.peakGflops = FmaPeak.gflops(threads);
        this.copyGigabytes = new DeviceRates(device, NANOS_PER_OP, 3).copyBytes() / 1e9;
    }

    public static void main(String[] arguments) {
        int threads = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 1;
        Gemm gemm = arguments.length > 1 && arguments[1].equals("java") ? Gemm.JAVA : Gemm.AUTO;
        int tokens = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 1024;
        int width = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 768;
        int heads = arguments.length > 4 ? Integer.parseInt(arguments[4]) : 12;
        DeviceSettings settings =
                DeviceSettings.DEFAULTS.withKind(Kind.CPU).withThreads(threads).withGemm(gemm);
        try (Device device = Devices.open(settings)) {
            new KernelBenchmark(device, System.out, threads, tokens, width, heads).run();
        }
    }

    private void run() {
        out.printf(
                "%s, %d tokens, width %d, %d heads%nFMA peak %.0f GFLOP/s, copy %.1f GB/s%n",
                device.name(), n, d, heads, peakGflops, copyGigabytes);
        products(DType.F32);
        products(DType.BF16);
        attention(DType.F32);
        attention(DType.BF16);
        groupedAttention();
        rows();
        llamaRows();
        wholeTensors();
        codecs();
    }

    /** Of the floats alone: what a link is spared is counted elsewhere. */
    private void codecs() {
        Tensor x = normals(n, d);
        Tensor back = normals(n, d);
        var codecs = new ArrayList<RowCodec>(List.of(WireCodec.values()));
        codecs.add(new TopK(0.1));
        for (RowCodec codec : codecs) {
            Tensor coded =
                    device.memory().tensor("coded as " + codec, DType.I32, n, codec.words(d));
            bytes("encode " + codec, 4.0 * n * d, () -> k.encode(codec, x, coded));
            bytes("decode " + codec, 4.0 * n * d, () -> k.decode(codec, coded, back));
        }
    }

    private void products(DType multiply) {
        Tensor x = normals(n, d);
        Tensor wide = normals(n, 4 * d);
        Tensor w = normals(d, 4 * d);
        Tensor wUse = w;
        if (multiply == DType.BF16) {
            wUse = device.memory().tensor("w", DType.BF16, d, 4 * d);
            k.copy(w, wUse);
        }
        Tensor weights = wUse;
        double flops = 8.0 * n * d * d;
        flops(
                multiply + " x w",
                flops,
                () -> k.gemm(multiply, false, x, false, weights, wide, false));
        flops(
                multiply + " dy w^T",
                flops,
                () -> k.gemm(multiply, false, wide, true, weights, x, false));
        flops(multiply + " x^T dy", flops, () -> k.weightGradient(multiply, x, wide, w, blocks));
    }

    private void attention(DType multiply) {
        Tensor qkv = normals(n, 3 * d);
        Tensor y = normals(n, d);
        Tensor logSumExp = normals(n, heads);
        Tensor dQkv = normals(n, 3 * d);
        AttentionShape shape = AttentionShape.dense(heads, d);
        double pairs = n * (n + 1.0) / 2;
        flops(
                multiply + " attention",
                4 * pairs * d,
                () -> k.attention(multiply, qkv, y, logSumExp, shape, n, blocks));
        flops(
                multiply + " attention backward",
                10 * pairs * d,
                () -> k.attentionBackward(multiply, qkv, y, logSumExp, y, dQkv, shape, n, blocks));
    }

    /** Four heads of queries to a key head where that divides, all keys seen and in a window. */
    private void groupedAttention() {
        int keyHeads = heads % 4 == 0 ? heads / 4 : heads;
        int size = d / heads;
        for (int window : new int[] {AttentionShape.NO_WINDOW, Math.max(1, n / 8)}) {
            AttentionShape shape =
                    new AttentionShape(heads, keyHeads, size, window, 1 / Math.sqrt(size));
            Tensor qkv = normals(n, shape.columns());
            Tensor y = normals(n, d);
            Tensor logSumExp = normals(n, heads);
            Tensor dQkv = normals(n, shape.columns());
            double pairs = 0;
            for (int query = 0; query < n; query++) {
                pairs += query + 1 - shape.firstKey(query);
            }
            String name = window == AttentionShape.NO_WINDOW ? "groups" : "window " + window;
            flops(
                    "attention, " + name,
                    4 * pairs * d,
                    () -> k.attention(DType.F32, qkv, y, logSumExp, shape, n, blocks));
            flops(
                    "attention backward, " + name,
                    10 * pairs * d,
                    () ->
                            k.attentionBackward(
                                    DType.F32, qkv, y, logSumExp, y, dQkv, shape, n, blocks));
        }
    }

    private void llamaRows() {
        int size = d / heads;
        Tensor x = normals(n, d);
        Tensor y = normals(n, d);
        Tensor dx = normals(n, d);
        Tensor gain = normals(1, d);
        Tensor r = normals(1, n);
        Tensor headGain = normals(1, size);
        Tensor headR = normals(1, n * heads);
        Tensor turns = normals(n, size);
        Tensor gated = normals(n, 8 * d);
        Tensor dGated = normals(n, 8 * d);
        Tensor wide = normals(n, 4 * d);
        Tensor wideBias = normals(1, 4 * d);
        Tensor wideOut = normals(n, 4 * d);
        double row = 4.0 * n * d;
        bytes("rms norm", 2 * row, () -> k.rmsNorm(x, gain, y, r, 1e-5));
        bytes("rms norm of heads", 2 * row, () -> k.rmsNorm(x, headGain, y, headR, 1e-5));
        bytes(
                "rms norm backward input",
                4 * row,
                () -> k.rmsNormBackwardInput(y, x, gain, r, dx, true));
        bytes(
                "rms norm backward weight",
                2 * row,
                () -> k.rmsNormBackwardWeight(y, x, r, gain, blocks));
        if (size % 2 == 0) {
            bytes("rotate", 2 * row, () -> k.rotate(dx, turns, false));
        }
        bytes("swiglu", 12 * row, () -> k.swiGlu(gated, wide));
        bytes("swiglu backward", 20 * row, () -> k.swiGluBackward(gated, wide, dGated));
        bytes("bias gelu, exact", 12 * row, () -> k.biasGelu(wide, wideBias, wideOut, Gelu.EXACT));
        bytes("gelu backward, exact", 12 * row, () -> k.geluBackward(wide, wideOut, Gelu.EXACT));
    }

    private void rows() {
        Tensor x = normals(n, d);
        Tensor y = normals(n, d);
        Tensor dx = normals(n, d);
        Tensor gain = normals(1, d);
        Tensor bias = normals(1, d);
        Tensor mean = normals(1, n);
        Tensor rstd = normals(1, n);
        Tensor wide = normals(n, 4 * d);
        Tensor wideOut = normals(n, 4 * d);
        Tensor wideBias = normals(1, 4 * d);
        double row = 4.0 * n * d;
        bytes("layer norm", 2 * row, () -> k.layerNorm(x, gain, bias, y, mean, rstd, 1e-5));
        bytes(
                "layer norm backward input",
                4 * row,
                () -> k.layerNormBackwardInput(y, x, gain, mean, rstd, dx));
        bytes(
                "layer norm backward weight",
                2 * row,
                () -> k.layerNormBackwardWeight(y, x, mean, rstd, gain, bias, blocks));
        bytes("bias gelu", 12 * row, () -> k.biasGelu(wide, wideBias, wideOut, Gelu.TANH));
        bytes("gelu backward", 12 * row, () -> k.geluBackward(wide, wideOut, Gelu.TANH));
        k.zero(wideOut);
        bytes("bias gradient", 4 * row, () -> k.biasGradient(wideOut, wideBias, blocks));
        bytes("bias and residual", 3 * row, () -> k.addBiasAndResidual(dx, bias, x));
        Tensor logits = normals(Math.min(n, 256), 50257);
        Tensor targets = device.memory().tensor("targets", DType.I32, 1, logits.rows());
        Tensor losses = normals(1, logits.rows());
        Tensor part = normals(1, 3 * logits.rows());
        TokenRange all = TokenRange.all(logits.columns());
        bytes(
                "cross-entropy",
                8.0 * logits.elements(),
                () -> {
                    k.softmaxPart(logits, targets, all, part, true);
                    k.crossEntropy(part, 0, logits, targets, all, losses, 1e-3f);
                });
    }

    private void wholeTensors() {
        int million = 1 << 10;
        Tensor w = normals(8 * million, million);
        Tensor g = normals(8 * million, million);
        Tensor m = device.memory().tensor("m", DType.F32, 8 * million, million);
        Tensor v = device.memory().tensor("v", DType.F32, 8 * million, million);
        AdamWStep step = new AdamWStep(1, 1e-5, 0.9, 0.95, 1e-8, 0.1, 1);
        bytes("adamw", 8.0 * 4 * w.elements(), () -> k.adamW(w, g, m, v, step));
        bytes("squared norm", 4.0 * w.elements(), () -> k.squaredNorm(w));
        bytes("all finite", 4.0 * w.elements(), () -> k.allFinite(w));
        bytes("zero", 4.0 * w.elements(), () -> k.zero(g));
    }

    private void flops(String name, double flops, Runnable op) {
        double seconds = seconds(op);
        double rate = flops / seconds / 1e9;
        out.printf(
                "%-28s %9.3f ms %8.0f GFLOP/s %5.0f %% of FMA peak%n",
                name, seconds * 1e3, rate, 100 * rate / peakGflops);
    }

    private void bytes(String name, double bytes, Runnable op) {
        double seconds = seconds(op);
        double rate = bytes / seconds / 1e9;
        out.printf(
                "%-28s %9.3f ms %8.1f GB/s    %5.0f %% of copy%n",
                name, seconds * 1e3, rate, 100 * rate / copyGigabytes);
    }

    private static double seconds(Runnable op) {
        return Repeated.seconds(op, NANOS_PER_OP, 3);
    }

    private Tensor normals(int rows, int columns) {
        Tensor tensor = device.memory().tensor("benchmark", DType.F32, rows, columns);
        Random random = new Random(1);
        float[] some = new float[4099];
        for (int i = 0; i < some.length; i++) {
            some[i] = (float) random.nextGaussian();
        }
        for (long i = 0; i < tensor.elements(); i++) {
            tensor.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, some[(int) (i % some.length)]);
        }
        return tensor;
    }
}
