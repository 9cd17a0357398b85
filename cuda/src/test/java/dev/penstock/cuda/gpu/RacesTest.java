package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.device.TopK;
import dev.penstock.cuda.device.WireCodec;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * No kernel has two threads that touch the same bytes without a barrier between them. The emulator
 * sees every access, so a missing barrier is found in whatever order the threads run.
 */
class RacesTest {
    private static final DeviceSettings GPU = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);
    private static final TokenBlocks BLOCKS = new TokenBlocks(2, 40, 0, 32);
    private static final int ROWS = BLOCKS.rows();
    private static final int VOCABULARY = 37;

    private final SplittableRandom random = new SplittableRandom(20);

    @BeforeAll
    static void checkedKernels() {
        EmulatedGpus.check();
    }

    @AfterAll
    static void othersAgain() {
        EmulatedGpus.checkNoMore();
    }

    @ParameterizedTest
    @CsvSource({
        "missingBarrier, shared",
        "exchangeForBarrier, shared",
        "crossedBlocks, global",
        "lateWait, shared"
    })
    void aPlantedRaceIsFound(String kernel, String memory) {
        assertThatThrownBy(() -> PlantedKernels.run(kernel, 0, 2))
                .hasMessageContaining("CUDA_ERROR_LAUNCH_FAILED");

        assertThat(EmulatedGpus.failure())
                .startsWith("kernel " + kernel + ": race: thread ")
                .contains("in " + memory + " memory");
    }

    @Test
    void barriersAtomicsAndNeighbouringBytesAreNoRaces() {
        // thread 37 has lane 36's number and its mirror's, 26
        assertThat(PlantedKernels.run("wellBehaved", 0, 2)[5]).isEqualTo(36 + 26);
    }

    /** On shapes with more than one block, and with rows that no tile divides. */
    @Test
    void noKernelRaces() throws IOException {
        EmulatedGpus.counted();
        for (Gemm gemm : List.of(Gemm.KERNELS, Gemm.CUBLAS)) {
            try (Device device = GpuDevice.open(GPU.withGemm(gemm))) {
                for (Runnable op : ops(device, gemm)) {
                    op.run();
                    device.kernels().finish();
                }
            }
        }

        Set<String> unchecked = kernels();
        EmulatedGpus.counted()
                .forEach(
                        (kernel, count) -> {
                            if (count.bytes() > 0) {
                                unchecked.remove(kernel);
                            }
                        });
        assertThat(unchecked).as("kernels that no op here runs").isEmpty();
    }

    private static Set<String> kernels() throws IOException {
        try (InputStream ptx = GpuModule.class.getResourceAsStream("kernels.ptx")) {
            String text =
                    new String(
                            Objects.requireNonNull(ptx).readAllBytes(), StandardCharsets.US_ASCII);
            Set<String> names = new TreeSet<>();
            Pattern.compile("\\.visible \\.entry (\\w+)")
                    .matcher(text)
                    .results()
                    .forEach(found -> names.add(found.group(1)));
            return names;
        }
    }

    private List<Runnable> ops(Device device, Gemm gemm) {
        List<Runnable> ops = new ArrayList<>();
        if (gemm == Gemm.CUBLAS) {
            addOddProducts(device, ops);
            addRoundedGradients(device, ops);
            return ops;
        }
        for (int head : List.of(8, 64, 128)) {
            addAttention(device, head, ops);
        }
        addProducts(device, ops);
        addNorms(device, ops);
        addElements(device, ops);
        addTables(device, ops);
        addSums(device, ops);
        return ops;
    }

    /** cuBLAS leaves few columns and few rows to us. */
    private void addOddProducts(Device device, List<Runnable> ops) {
        Kernels k = device.kernels();
        Tensor x = halves(device, ROWS, 40);
        Tensor w = halves(device, 3, 40);
        Tensor y = floats(device, ROWS, 3);
        Tensor dy = halves(device, ROWS, 3);
        Tensor dw = floats(device, 3, 40);
        ops.add(() -> k.gemm(DType.BF16, false, x, true, w, y, true));
        ops.add(() -> k.gemm(DType.BF16, true, dy, false, x, dw, true));
    }

    /** What kernels read and write as bf16 beside cublasLt's products. */
    private void addRoundedGradients(Device device, List<Runnable> ops) {
        Kernels k = device.kernels();
        int context = BLOCKS.tokens();
        for (int head : List.of(64, 128)) {
            AttentionShape shape = AttentionShape.dense(1, head);
            Tensor qkv = halves(device, ROWS, 3 * head);
            Tensor dQkv = halves(device, ROWS, 3 * head);
            Tensor y = floats(device, ROWS, head);
            Tensor dy = halves(device, ROWS, head);
            Tensor sums = floats(device, ROWS, 1);
            ops.add(
                    () ->
                            k.wholeAttentionBackward(
                                    DType.BF16, qkv, y, sums, dy, dQkv, shape, context, BLOCKS));
        }
        Tensor moments = floats(device, 1, ROWS);
        for (int columns : List.of(70, 770)) {
            Tensor x = floats(device, ROWS, columns);
            Tensor dy = halves(device, ROWS, columns);
            Tensor dx = floats(device, ROWS, columns);
            Tensor gain = floats(device, 1, columns);
            Tensor bias = floats(device, 1, columns);
            Tensor dGain = floats(device, 1, columns);
            for (TokenBlocks blocks : List.of(BLOCKS, new TokenBlocks(64, 1, 0, 1))) {
                int rows = blocks.rows();
                Tensor of = moments.columns(0, rows);
                ops.add(
                        () ->
                                k.layerNormBackward(
                                        dy.rows(0, rows),
                                        x.rows(0, rows),
                                        gain,
                                        of,
                                        of,
                                        dx.rows(0, rows),
                                        dGain,
                                        bias,
                                        blocks));
            }
            ops.add(() -> k.biasGradient(dy, bias, BLOCKS));
        }
        int vocabulary = 1_030; // the columns beyond the last multiple of 8 are a kernel's
        Tensor x = halves(device, ROWS, 40);
        Tensor table = halves(device, vocabulary, 40);
        Tensor logits = halves(device, ROWS, 1_032).columns(0, vocabulary);
        Tensor ids = device.memory().tensor("ids", DType.I32, 1, ROWS);
        ids.writeIndices(MemorySegment.ofArray(new int[ROWS]));
        Tensor losses = floats(device, 1, ROWS);
        ops.add(() -> k.gemmThen(x, true, table, new Epilogue.Rounding(), logits));
        ops.add(() -> k.crossEntropyOfRows(logits, ids, losses, 1e-3f, logits));
    }

    private void addAttention(Device device, int head, List<Runnable> ops) {
        Kernels k = device.kernels();
        AttentionShape shape = AttentionShape.dense(1, head);
        Tensor qkv = floats(device, ROWS, 3 * head);
        Tensor dQkv = floats(device, ROWS, 3 * head);
        Tensor half = halves(device, ROWS, 3 * head);
        Tensor y = floats(device, ROWS, head);
        Tensor dy = floats(device, ROWS, head);
        Tensor sums = floats(device, ROWS, 1);
        int context = BLOCKS.tokens();
        ops.add(() -> k.attention(DType.F32, qkv, y, sums, shape, context, BLOCKS));
        ops.add(
                () ->
                        k.attentionBackward(
                                DType.F32, qkv, y, sums, dy, dQkv, shape, context, BLOCKS));
        for (Tensor of : List.of(qkv, half)) {
            ops.add(() -> k.attention(DType.BF16, of, y, sums, shape, context, BLOCKS));
            ops.add(
                    () ->
                            k.attentionBackward(
                                    DType.BF16, of, y, sums, dy, dQkv, shape, context, BLOCKS));
        }
    }

    private void addProducts(Device device, List<Runnable> ops) {
        Kernels k = device.kernels();
        Tensor x = floats(device, ROWS, 40);
        Tensor w = floats(device, 40, 70);
        Tensor y = floats(device, ROWS, 70);
        for (DType multiply : List.of(DType.F32, DType.BF16)) {
            ops.add(() -> k.gemm(multiply, false, x, false, w, y, false));
            ops.add(() -> k.weightGradient(multiply, x, y, w, BLOCKS));
        }
    }

    private void addNorms(Device device, List<Runnable> ops) {
        Kernels k = device.kernels();
        Tensor mean = floats(device, 1, 2 * ROWS);
        Tensor rstd = floats(device, 1, 2 * ROWS);
        TokenBlocks many = new TokenBlocks(64, 1, 0, 1);
        for (int columns : List.of(70, 770)) {
            Tensor x = floats(device, ROWS, columns);
            Tensor y = floats(device, ROWS, columns);
            Tensor dx = floats(device, ROWS, columns);
            Tensor half = halves(device, ROWS, columns);
            Tensor gain = floats(device, 1, columns);
            Tensor bias = floats(device, 1, columns);
            Tensor means = mean.columns(0, ROWS);
            Tensor roots = rstd.columns(0, ROWS);
            ops.add(() -> k.layerNorm(x, gain, bias, y, means, roots, 1e-5));
            ops.add(() -> k.layerNorm(x, gain, bias, half, means, roots, 1e-5));
            ops.add(
                    () ->
                            k.layerNormBackward(
                                    y.rows(0, 64),
                                    x.rows(0, 64),
                                    gain,
                                    means.columns(0, 64),
                                    roots.columns(0, 64),
                                    dx.rows(0, 64),
                                    bias,
                                    floats(device, 1, columns),
                                    many));
        }
        Tensor x = floats(device, ROWS, 70);
        Tensor y = floats(device, ROWS, 70);
        Tensor half = halves(device, ROWS, 70);
        Tensor dx = floats(device, ROWS, 70);
        Tensor gain = floats(device, 1, 70);
        Tensor bias = floats(device, 1, 70);
        Tensor means = mean.columns(0, ROWS);
        Tensor roots = rstd.columns(0, ROWS);
        ops.add(() -> k.layerNormBackwardInput(y, x, gain, means, roots, dx));
        ops.add(() -> k.layerNormBackwardWeight(y, x, means, roots, gain, bias, BLOCKS));
        Tensor ofHead = floats(device, 1, 35);
        ops.add(() -> k.rmsNorm(x, ofHead, y, mean, 1e-5));
        ops.add(() -> k.rmsNorm(x, ofHead, half, mean, 1e-5));
        ops.add(() -> k.rmsNormBackwardInput(y, x, ofHead, mean, dx, true));
        ops.add(() -> k.rmsNormBackwardInput(y, x, ofHead, mean, y, false));
        ops.add(() -> k.rmsNormBackwardWeight(y, x, mean, ofHead, BLOCKS));
    }

    private void addElements(Device device, List<Runnable> ops) {
        Kernels k = device.kernels();
        Tensor x = floats(device, ROWS, 70);
        Tensor y = floats(device, ROWS, 70);
        Tensor z = floats(device, ROWS, 140);
        Tensor half = halves(device, ROWS, 70);
        Tensor otherHalf = halves(device, ROWS, 70);
        Tensor wideHalf = halves(device, ROWS, 140);
        Tensor bias = floats(device, 1, 70);
        Tensor dBias = floats(device, 1, 70);
        ops.add(() -> k.addBias(y, bias));
        ops.add(() -> k.addBiasRounded(y, bias, half));
        ops.add(() -> k.addBiasAndResidual(y, bias, x));
        for (Gelu form : Gelu.values()) {
            ops.add(() -> k.biasGelu(x, bias, y, form));
            ops.add(() -> k.geluBackward(x, y, form));
            ops.add(() -> k.geluRounded(x, bias, half, form));
            ops.add(() -> k.geluBackwardRounded(x, bias, y, form, half, dBias, BLOCKS));
        }
        ops.add(() -> k.swiGlu(z, y));
        ops.add(() -> k.swiGlu(z, half));
        Tensor dz = floats(device, ROWS, 140);
        ops.add(() -> k.swiGluBackward(z, y, dz));
        ops.add(() -> k.swiGluBackward(z, y, wideHalf));
        Tensor keys = device.memory().tensor("keys", DType.I32, ROWS, 2);
        var mask = DropoutMask.scaled(7, 0, 0.25);
        ops.add(() -> k.dropout(x, keys, mask, y, true));
        ops.add(() -> k.dropout(half, keys, mask, otherHalf, false));
        ops.add(() -> k.rotate(z, floats(device, 40, 70), false));
        Tensor sum = device.memory().tensor("sum", DType.I64, ROWS, 70);
        Tensor otherSum = device.memory().tensor("sum", DType.I64, ROWS, 70);
        ops.add(() -> k.foldGradient(y, sum, 1, false));
        ops.add(() -> k.foldGradient(y, otherSum, 1e-30f, false));
        ops.add(() -> k.add(sum, otherSum));
        ops.add(() -> k.unfoldGradient(sum, y));
        ops.add(() -> k.add(x, y));
        ops.add(() -> k.subtract(x, y));
        ops.add(() -> k.blend(0.5f, x, 0.5f, y));
        ops.add(() -> k.copy(x, y));
        ops.add(() -> k.copy(half, otherHalf));
        ops.add(() -> k.copy(x, half));
        ops.add(() -> k.copy(half, x));
        List<RowCodec> codecs = new ArrayList<>(List.of(WireCodec.values()));
        codecs.add(new TopK(0.1));
        for (RowCodec codec : codecs) {
            Tensor coded = device.memory().tensor("coded", DType.I32, ROWS, codec.words(70));
            ops.add(() -> k.encode(codec, x, coded));
            ops.add(() -> k.decode(codec, coded, y));
        }
        ops.add(() -> k.biasGradient(x, bias, BLOCKS));
        ops.add(() -> k.biasGradientRounded(x, bias, BLOCKS, half));
    }

    private void addTables(Device device, List<Runnable> ops) {
        Kernels k = device.kernels();
        Tensor table = floats(device, VOCABULARY, 70);
        Tensor x = floats(device, ROWS, 70);
        Tensor ids = device.memory().tensor("ids", DType.I32, 1, ROWS);
        int[] tokens = new int[ROWS];
        for (int i = 0; i < ROWS; i++) {
            tokens[i] = i < 40 ? 3 : random.nextInt(VOCABULARY); // a list of more than a warp
        }
        ids.writeIndices(MemorySegment.ofArray(tokens));
        TokenRange range = TokenRange.all(VOCABULARY);
        ops.add(() -> k.embedding(ids, range, table, x));
        ops.add(() -> k.embeddingBackward(x, ids, range, table, BLOCKS));
        Tensor logits = floats(device, ROWS, VOCABULARY);
        Tensor part = floats(device, 1, 3 * ROWS);
        Tensor losses = floats(device, 1, ROWS);
        ops.add(() -> k.softmaxPart(logits, ids, range, part, true));
        ops.add(() -> k.crossEntropy(part, 0, logits, ids, range, losses, 1e-3f));
        Tensor some = floats(device, 1, 21_000); // more than a block keeps in registers
        Tensor someIds = ids.columns(0, 1);
        Tensor inPlace =
                new Tensor(
                        some.buffer(),
                        some.offsetBytes(),
                        DType.BF16,
                        some.rows(),
                        some.columns(),
                        2 * some.stride());
        Tensor someLosses = losses.columns(0, 1);
        ops.add(() -> k.crossEntropyOfRows(some, someIds, someLosses, 1, some));
        ops.add(() -> k.crossEntropyOfRows(some, someIds, someLosses, 1, inPlace));
    }

    private void addSums(Device device, List<Runnable> ops) {
        Kernels k = device.kernels();
        Tensor weight = floats(device, 5, 1_000);
        Tensor gradient = floats(device, 5, 1_000);
        Tensor m = floats(device, 5, 1_000);
        Tensor v = floats(device, 5, 1_000);
        Tensor half = halves(device, 5, 1_000);
        AdamWStep step = new AdamWStep(1, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1);
        ops.add(() -> k.squaredNorms(List.of(weight, gradient)));
        ops.add(() -> k.allFinite(weight));
        ops.add(() -> k.allFinite(half));
        ops.add(
                () -> {
                    k.watchFiniteLater(weight);
                    k.watchFiniteLater(half);
                    k.firstNotFinite();
                });
        ops.add(() -> k.adamW(weight, gradient, m, v, step));
        ops.add(
                () ->
                        k.adamW(
                                List.of(new AdamWParameter(weight, gradient, m, v, half, true)),
                                step));
    }

    private Tensor floats(Device device, int rows, int columns) {
        Tensor tensor = device.memory().tensor("floats", DType.F32, rows, columns);
        float[] numbers = new float[rows * columns];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = (float) random.nextDouble(-1, 1);
        }
        tensor.write(MemorySegment.ofArray(numbers));
        return tensor;
    }

    private Tensor halves(Device device, int rows, int columns) {
        Tensor tensor = device.memory().tensor("halves", DType.BF16, rows, columns);
        short[] numbers = new short[rows * columns];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = (short) (Float.floatToRawIntBits((float) random.nextDouble()) >> 16);
        }
        tensor.write(MemorySegment.ofArray(numbers));
        return tensor;
    }
}
