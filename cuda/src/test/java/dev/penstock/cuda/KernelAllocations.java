package dev.penstock.cuda;

import com.sun.management.ThreadMXBean;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.device.TopK;
import dev.penstock.cuda.device.WireCodec;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Prints how many bytes of heap each op allocates per call once it is compiled, one line per op. To
 * be run in a JVM of its own: only there is one vector width loaded, as in production.
 */
final class KernelAllocations {
    private static final int CALLS = 20;
    private static final long PATIENCE_NANOS = 20_000_000_000L;

    private KernelAllocations() {}

    /**
     * Prints the bytes that each op allocates per call.
     *
     * @param arguments bytes per call below which an op needs no more warming up
     */
    public static void main(String[] arguments) {
        long few = Long.parseLong(arguments[0]);
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withThreads(1))) {
            ops(device).forEach((name, op) -> System.out.println(name + " " + bytes(op, few)));
        }
    }

    private static long bytes(Runnable op, long few) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long giveUp = System.nanoTime() + PATIENCE_NANOS;
        long bytes;
        do {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < CALLS; i++) {
                op.run();
            }
            bytes = (threads.getCurrentThreadAllocatedBytes() - before) / CALLS;
        } while (bytes > few && System.nanoTime() < giveUp);
        return bytes;
    }

    private static Map<String, Runnable> ops(Device device) {
        Kernels k = device.kernels();
        int n = 128;
        int d = 64;
        TokenBlocks blocks = new TokenBlocks(1, n, 0, 32);
        AttentionShape shape = AttentionShape.dense(2, d);
        EarlierKeys earlier = new EarlierKeys(shape, n);
        Tensor x = floats(device, n, d);
        Tensor y = floats(device, n, d);
        Tensor z = floats(device, n, d);
        Tensor squares = floats(device, n, d);
        Tensor wide = floats(device, n, 3 * d);
        Tensor dWide = floats(device, n, 3 * d);
        Tensor w = floats(device, d, d);
        Tensor row = floats(device, 1, d);
        Tensor otherRow = floats(device, 1, d);
        Tensor mean = floats(device, 1, n);
        Tensor rstd = floats(device, 1, n);
        Tensor logSumExp = floats(device, n, 2);
        Tensor ids = device.memory().tensor("ids", DType.I32, 1, n);
        TokenRange tokens = TokenRange.all(n);
        Tensor part = floats(device, 1, 3 * n);
        AdamWStep step = new AdamWStep(1, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1);
        Map<String, Runnable> ops = new LinkedHashMap<>();
        for (DType multiply : new DType[] {DType.F32, DType.BF16}) {
            ops.put("gemm " + multiply, () -> k.gemm(multiply, false, x, false, w, y, false));
            ops.put(
                    "weightGradient " + multiply,
                    () -> k.weightGradient(multiply, x, y, w, blocks));
        }
        ops.put("biasGradient", () -> k.biasGradient(x, row, blocks));
        ops.put("addBiasAndResidual", () -> k.addBiasAndResidual(y, row, x));
        ops.put("embedding", () -> k.embedding(ids, tokens, x, y));
        ops.put("embeddingBackward", () -> k.embeddingBackward(y, ids, tokens, x, blocks));
        ops.put("layerNorm", () -> k.layerNorm(x, row, otherRow, y, mean, rstd, 1e-5));
        ops.put("layerNormBackwardInput", () -> k.layerNormBackwardInput(y, x, row, mean, rstd, z));
        ops.put(
                "layerNormBackwardWeight",
                () -> k.layerNormBackwardWeight(y, x, mean, rstd, row, otherRow, blocks));
        ops.put("biasGelu", () -> k.biasGelu(x, row, y, Gelu.TANH));
        ops.put("geluBackward", () -> k.geluBackward(x, y, Gelu.TANH));
        ops.put("attention", () -> k.attention(DType.F32, wide, y, logSumExp, shape, n, blocks));
        ops.put(
                "attentionBackward",
                () ->
                        k.attentionBackward(
                                DType.F32, wide, y, logSumExp, z, dWide, shape, n, blocks));
        AttentionShape grouped = new AttentionShape(4, 2, 16, 40, 0.25);
        Tensor groupedQkv = wide.columns(0, 128);
        Tensor groupedSum = floats(device, n, 4);
        ops.put(
                "attention of groups in a window",
                () -> k.attention(DType.F32, groupedQkv, y, groupedSum, grouped, n, blocks));
        ops.put(
                "attentionBackward of groups in a window",
                () ->
                        k.attentionBackward(
                                DType.F32,
                                groupedQkv,
                                y,
                                groupedSum,
                                z,
                                dWide.columns(0, 128),
                                grouped,
                                n,
                                blocks));
        ops.put("rmsNorm", () -> k.rmsNorm(x, row, y, mean, 1e-5));
        ops.put("rmsNormBackwardInput", () -> k.rmsNormBackwardInput(y, x, row, mean, z, true));
        ops.put(
                "rmsNormBackwardInput in place",
                () -> k.rmsNormBackwardInput(y, x, row, mean, y, false));
        ops.put("rmsNormBackwardWeight", () -> k.rmsNormBackwardWeight(y, x, mean, row, blocks));
        ops.put("exact biasGelu", () -> k.biasGelu(x, row, y, Gelu.EXACT));
        ops.put("exact geluBackward", () -> k.geluBackward(x, y, Gelu.EXACT));
        Tensor gated = wide.columns(0, 2 * d);
        ops.put("swiGlu", () -> k.swiGlu(gated, y));
        ops.put("swiGluBackward", () -> k.swiGluBackward(gated, y, dWide.columns(0, 2 * d)));
        ops.put("geGlu", () -> k.geGlu(gated, y));
        ops.put("geGluBackward", () -> k.geGluBackward(gated, y, dWide.columns(0, 2 * d)));
        var retention = new RetentionShape(16, 32, List.of(0.9, 0.99), false);
        Tensor retained = wide.columns(0, 128);
        Tensor states = floats(device, 5, retention.stateColumns());
        Tensor roots = floats(device, n, 2);
        ops.put("retentionStates", () -> k.retentionStates(retained, states, retention, n, blocks));
        ops.put("retention", () -> k.retention(retained, states, y, retention, n, blocks));
        ops.put(
                "retentionBackward",
                () ->
                        k.retentionBackward(
                                retained, states, z, dWide.columns(0, 128), retention, n, blocks));
        Tensor gradient = states.rows(0, 1);
        ops.put(
                "retentionStateGradient",
                () -> k.retentionStateGradient(retained, gradient, z, retention, n, blocks));
        ops.put("gatedHeadNorm", () -> k.gatedHeadNorm(x, z, y, roots, 1e-6));
        ops.put("gatedHeadNormBackward", () -> k.gatedHeadNormBackward(y, x, z, roots, y, squares));
        ops.put("rotate", () -> k.rotate(wide, x, false));
        Tensor keys = device.memory().tensor("keys", DType.I32, n, 2);
        var mask = DropoutMask.scaled(7, 0, 0.25);
        ops.put("dropout", () -> k.dropout(x, keys, mask, y, true));
        Tensor sum = device.memory().tensor("sum", DType.I64, n, d);
        ops.put("foldGradient", () -> k.foldGradient(y, sum, 1, true));
        ops.put("unfoldGradient", () -> k.unfoldGradient(sum, y));
        var codecs = new ArrayList<RowCodec>(List.of(WireCodec.values()));
        codecs.add(new TopK(0.1));
        codecs.add(new TopK(0.03));
        for (RowCodec codec : codecs) {
            Tensor coded =
                    device.memory().tensor("coded as " + codec, DType.I32, n, codec.words(d));
            ops.put("encode " + codec, () -> k.encode(codec, x, coded));
            ops.put("decode " + codec, () -> k.decode(codec, coded, y));
        }
        Tensor q = wide.columns(0, d);
        Tensor keyValues = wide.columns(d, 2 * d);
        Tensor dKeyValues = dWide.columns(d, 2 * d);
        ops.put(
                "attentionToEarlier",
                () -> k.attentionToEarlier(DType.F32, q, keyValues, y, logSumExp, earlier));
        ops.put(
                "attentionToEarlierBackward",
                () ->
                        k.attentionToEarlierBackward(
                                DType.F32, q, keyValues, y, logSumExp, z, x, dKeyValues, earlier));
        ops.put("softmaxPart", () -> k.softmaxPart(x, ids, tokens, part, true));
        ops.put("crossEntropy", () -> k.crossEntropy(part, 0, x, ids, tokens, mean, 1e-3f));
        ops.put("add", () -> k.add(x, y));
        ops.put("subtract", () -> k.subtract(x, y));
        ops.put("blend", () -> k.blend(0.5f, x, 0.5f, y));
        ops.put("squaredNorm", () -> k.squaredNorm(x));
        ops.put("allFinite", () -> k.allFinite(x));
        ops.put("adamW", () -> k.adamW(x, y, z, squares, step));
        ops.put("biasTanh", () -> k.biasTanh(x, row));
        ops.put("tanhBackward", () -> k.tanhBackward(x, y));
        return ops;
    }

    private static Tensor floats(Device device, int rows, int columns) {
        return device.memory().tensor("floats", DType.F32, rows, columns);
    }
}
