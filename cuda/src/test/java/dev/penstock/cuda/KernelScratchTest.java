package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * After some ops, kernels hold exactly the scratch memory that was counted for them, to the byte.
 */
@ParameterizedClass
@MethodSource("allDevices")
class KernelScratchTest extends KernelContract {
    private final CountedKernels counted;
    private final int threads;

    static Stream<DeviceSettings> allDevices() {
        return Stream.concat(devices(), EmulatedGpus.withCublas());
    }

    KernelScratchTest(DeviceSettings settings) {
        super(settings);
        threads = settings.kind() == DeviceSettings.Kind.CPU ? settings.threads() : 1;
        counted = Devices.counting(settings);
    }

    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16", "F16"})
    void productsOfEveryShape(DType multiply) {
        if (multiply == DType.F16 && device.kernels().writesBFloat16()) {
            return; // GPUs do not multiply halves
        }
        Tensor narrow =
                device.memory()
                        .tensor("narrow", multiply == DType.F32 ? DType.BF16 : multiply, 70, 132);
        for (int rows : new int[] {1, 5, 16, 300}) {
            Tensor x = normals(rows, 70);
            Tensor y = zeros(rows, 132);
            both(k -> k.gemm(multiply, false, x, false, normals(70, 132), y, false));
            both(k -> k.gemm(multiply, false, y, true, normals(70, 132), x, true));
            both(k -> k.gemm(multiply, true, x, false, y, zeros(70, 132), false));
            if (multiply != DType.F32) {
                both(k -> k.gemm(multiply, false, x, false, narrow, y, false));
            }
        }
        both(
                k ->
                        k.gemm(
                                multiply,
                                false,
                                normals(300, 40),
                                false,
                                normals(40, 9),
                                zeros(300, 9),
                                false));
    }

    /** GPUs do not multiply them. */
    @Test
    void productsOfIntegers() {
        if (device.kernels().writesBFloat16()) {
            return;
        }
        for (int[] size : new int[][] {{70, 132}, {300, 1000}, {1100, 260}}) {
            int stride = DType.I8.rowStride(size[1]);
            Tensor weight =
                    new Tensor(
                            device.memory().allocate("integers", (long) size[0] * stride),
                            0,
                            DType.I8,
                            size[0],
                            size[1],
                            stride);
            device.kernels().copy(normals(size[0], size[1]), weight);
            for (int rows : new int[] {1, 16, 90}) {
                Tensor x = normals(rows, size[0]);
                Tensor y = normals(rows, size[1]);
                both(k -> k.gemm(DType.F32, false, x, false, weight, y, false));
                both(k -> k.gemm(DType.F32, false, y, true, weight, x, true));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void weightGradientsOfEveryShape(DType multiply) {
        for (int columns : new int[] {9, 70, 900}) {
            Tensor x = normalsWithGaps(2 * 70, 40);
            Tensor dy = normals(2 * 70, columns);
            Tensor dWeight = zeros(40, columns);
            both(k -> k.weightGradient(multiply, x, dy, dWeight, new TokenBlocks(2, 70, 5, 32)));
        }
    }

    @Test
    void attentionOfSlicesAndToEarlierKeys() {
        int heads = 2;
        AttentionShape shape = AttentionShape.dense(heads, 16);
        EarlierKeys earlier = new EarlierKeys(shape, 170);
        Tensor qkv = normals(2 * 100, 3 * 16);
        for (int tokens : new int[] {20, 60}) {
            TokenBlocks slice = new TokenBlocks(2, tokens, 40, 8);
            Tensor y = zeros(2 * tokens, 16);
            Tensor lse = zeros(2 * tokens, heads);
            byHeads(k -> k.attention(DType.F32, qkv, y, lse, shape, 100, slice));
            byHeads(
                    k ->
                            k.attentionBackward(
                                    DType.F32, qkv, y, lse, y, zeros(200, 48), shape, 100, slice));
        }
        Tensor q = normals(30, 16);
        Tensor keyValues = normals(170, 32);
        Tensor y = zeros(30, 16);
        Tensor lse = zeros(30, heads);
        byHeads(k -> k.attentionToEarlier(DType.F32, q, keyValues, y, lse, earlier));
        byHeads(
                k ->
                        k.attentionToEarlierBackward(
                                DType.F32,
                                q,
                                keyValues,
                                y,
                                lse,
                                y,
                                zeros(30, 16),
                                zeros(170, 32),
                                earlier));
    }

    @Test
    void attentionOfGroupsInWindows() {
        for (int window : new int[] {10, 50, AttentionShape.NO_WINDOW}) {
            AttentionShape shape = new AttentionShape(4, 2, 8, window, 1);
            Tensor qkv = normals(2 * 150, shape.columns());
            for (int tokens : new int[] {5, 90}) {
                TokenBlocks slice = new TokenBlocks(2, tokens, 60, 8);
                Tensor y = zeros(2 * tokens, 32);
                Tensor lse = zeros(2 * tokens, 4);
                byHeads(k -> k.attention(DType.F32, qkv, y, lse, shape, 150, slice));
                byHeads(
                        k ->
                                k.attentionBackward(
                                        DType.F32,
                                        qkv,
                                        y,
                                        lse,
                                        y,
                                        zeros(300, shape.columns()),
                                        shape,
                                        150,
                                        slice));
            }
            Tensor q = normals(70, 32);
            Tensor keyValues = normals(170, 32);
            Tensor lse = zeros(70, 4);
            EarlierKeys earlier = new EarlierKeys(shape, 190);
            byHeads(
                    k ->
                            k.attentionToEarlier(
                                    DType.F32, q, keyValues, zeros(70, 32), lse, earlier));
            byHeads(
                    k ->
                            k.attentionToEarlierBackward(
                                    DType.F32,
                                    q,
                                    keyValues,
                                    q,
                                    lse,
                                    q,
                                    zeros(70, 32),
                                    zeros(170, 32),
                                    earlier));
        }
    }

    @Test
    void sumsOverRows() {
        Tensor x = normals(90, 70);
        TokenBlocks blocks = new TokenBlocks(3, 30, 0, 4);
        both(k -> k.biasGradient(x, zeros(1, 70), blocks));
        both(
                k ->
                        k.layerNormBackwardWeight(
                                x,
                                x,
                                zeros(1, 90),
                                zeros(1, 90),
                                zeros(1, 70),
                                zeros(1, 70),
                                blocks));
        TokenBlocks many = new TokenBlocks(45, 2, 0, 1);
        both(
                k ->
                        k.layerNormBackward(
                                x,
                                x,
                                zeros(1, 70),
                                zeros(1, 90),
                                zeros(1, 90),
                                zeros(90, 70),
                                zeros(1, 70),
                                zeros(1, 70),
                                many));
        both(k -> k.rmsNormBackwardWeight(x, x, zeros(1, 90 * 5), zeros(1, 14), blocks));
        both(k -> k.squaredNorm(normals(400, 400)));
        both(k -> k.squaredNorms(List.of(normals(200, 300), normals(1, 5), normals(400, 400))));
    }

    @Test
    void updatesOfManyParameters() {
        AdamWStep step = new AdamWStep(1, 0.01, 0.9, 0.95, 1e-8, 0.1, 1);
        Tensor x = normals(3, 5);
        AdamWParameter parameter = new AdamWParameter(x, x, x, x, null, true);
        for (int count : new int[] {1, 40, 3}) {
            both(k -> k.adamW(Collections.nCopies(count, parameter), step));
        }
    }

    @Test
    void gradientsOfTables() {
        Tensor tokens = indices(90, 1_000);
        TokenRange range = new TokenRange(0, 1_000);
        TokenBlocks blocks = new TokenBlocks(3, 30, 0, 4);
        Tensor dTable = zeros(1_000, 12);
        both(k -> k.embeddingBackward(normals(90, 12), tokens, range, dTable, blocks));
    }

    private void both(Consumer<Kernels> op) {
        op.accept(kernels);
        op.accept(counted);

        assertThat(counted.bytes()).isEqualTo(held());
        assertThat(counted.anew().bytes()).isLessThanOrEqualTo(counted.bytes());
    }

    /**
     * Heads are taken by whichever thread is free. One that comes too late for all of them takes
     * nothing from the library that multiplies, but it might have.
     */
    private void byHeads(Consumer<Kernels> op) {
        if (threads == 1) {
            both(op);
            return;
        }
        op.accept(kernels);
        op.accept(counted);

        assertThat(counted.bytes()).isGreaterThanOrEqualTo(held());
        assertThat(held()).isPositive();
    }

    private long held() {
        return device.memory().children().stream().mapToLong(DeviceScope::liveBytes).sum();
    }
}
