package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Heads of queries that share keys, windows, scales of their own. */
@ParameterizedClass
@MethodSource("devices")
class GroupedAttentionContractTest extends KernelContract {
    private static final int ALL = AttentionShape.NO_WINDOW;

    private final DeviceSettings settings;

    GroupedAttentionContractTest(DeviceSettings settings) {
        super(settings);
        this.settings = settings;
    }

    /** A shape, and the sequences that it is tried on. */
    private record Case(AttentionShape shape, int sequences, int context) {}

    private static Case of(
            int heads, int keyHeads, int size, int window, int sequences, int context) {
        double scale = 0.9 / Math.sqrt(size);
        return new Case(
                new AttentionShape(heads, keyHeads, size, window, scale), sequences, context);
    }

    private static final List<Case> CASES =
            List.of(
                    of(4, 2, 5, ALL, 2, 9),
                    of(3, 3, 8, 1, 1, 20),
                    of(6, 2, 7, 3, 2, 11),
                    of(2, 1, 16, 17, 1, 90),
                    of(3, 1, 33, ALL, 1, 40),
                    of(2, 2, 20, 70, 1, 150));

    private double within(double exact, DType multiply) {
        return multiply == DType.BF16 && settings.kind() == Kind.CUDA ? 2e-2 : exact;
    }

    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void attentionAndItsGradientsMeetTheirFormulas(DType multiply) {
        for (Case c : CASES) {
            AttentionShape shape = c.shape;
            int rows = c.sequences * c.context;
            Tensor qkv = normalsWithGaps(rows, shape.columns());
            Tensor y = normalsWithGaps(rows, shape.queryColumns());
            Tensor logSumExp = zeros(rows, shape.heads());
            Tensor dy = normalsWithGaps(rows, shape.queryColumns());
            Tensor dQkv = zeros(rows, shape.columns());
            TokenBlocks whole = new TokenBlocks(c.sequences, c.context, 0, 16);

            kernels.attention(multiply, qkv, y, logSumExp, shape, c.context, whole);
            kernels.attentionBackward(
                    multiply, qkv, y, logSumExp, dy, dQkv, shape, c.context, whole);

            Truth.Attended truth = Truth.attention(values(qkv), values(dy), c.context, shape);
            assertClose("y of " + c, y, truth.y(), within(1e-5, multiply));
            assertClose("logSumExp of " + c, logSumExp, truth.logSumExp(), within(1e-5, multiply));
            assertClose("dQkv of " + c, dQkv, truth.dQkv(), within(1e-5, multiply));
        }
    }

    /** Of several blocks of queries, with rests of vectors. */
    @Test
    void queriesThatSeeBothWaysAndTheirGradientsMeetTheirFormulas() {
        assumeFalse(settings.kind() == Kind.CUDA, "GPUs do not attend to both sides yet");
        for (Case c : List.of(of(4, 2, 5, ALL, 2, 9), of(3, 1, 33, ALL, 1, 150))) {
            AttentionShape shape = c.shape.bothWays();
            int rows = c.sequences * c.context;
            Tensor qkv = normalsWithGaps(rows, shape.columns());
            Tensor y = normalsWithGaps(rows, shape.queryColumns());
            Tensor logSumExp = zeros(rows, shape.heads());
            Tensor dy = normalsWithGaps(rows, shape.queryColumns());
            Tensor dQkv = zeros(rows, shape.columns());
            TokenBlocks whole = new TokenBlocks(c.sequences, c.context, 0, 16);

            kernels.attention(DType.F32, qkv, y, logSumExp, shape, c.context, whole);
            kernels.wholeAttentionBackward(
                    DType.F32, qkv, y, logSumExp, dy, dQkv, shape, c.context, whole);

            Truth.Attended truth = Truth.attention(values(qkv), values(dy), c.context, shape);
            assertClose("y of " + c, y, truth.y(), 1e-5);
            assertClose("logSumExp of " + c, logSumExp, truth.logSumExp(), 1e-5);
            assertClose("dQkv of " + c, dQkv, truth.dQkv(), 1e-5);
            TokenBlocks part = new TokenBlocks(c.sequences, c.context - 1, 0, 16);
            assertThatThrownBy(
                            () ->
                                    kernels.attention(
                                            DType.F32, qkv, y, logSumExp, shape, c.context, part))
                    .hasMessageContaining("which see each other");
        }
    }

    @Test
    void gradientsMeetFiniteDifferences() {
        for (Case c : List.of(of(4, 2, 3, 3, 1, 7), of(3, 1, 2, ALL, 2, 4))) {
            AttentionShape shape = c.shape;
            int rows = c.sequences * c.context;
            Tensor qkv = normals(rows, shape.columns());
            Tensor dy = normals(rows, shape.queryColumns());
            SlicedAttention attention =
                    new SlicedAttention(device, DType.F32, qkv, dy, shape, c.context);

            attention.run(4, c.context);

            double[][] weights = values(dy);
            double[][] truth =
                    gradient(
                            values(qkv),
                            v -> inner(Truth.attention(v, weights, c.context, shape).y(), weights));
            assertClose("dQkv of " + c, attention.dQkv(), truth, 1e-5);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void slicesOnTheGridHaveTheBitsOfTheWhole(DType multiply) {
        for (Case c : List.of(of(4, 2, 8, ALL, 2, 160), of(3, 1, 20, 50, 1, 160))) {
            Tensor qkv = normals(c.sequences * c.context, c.shape.columns());
            Tensor dy = normals(c.sequences * c.context, c.shape.queryColumns());
            SlicedAttention whole =
                    new SlicedAttention(device, multiply, qkv, dy, c.shape, c.context);
            whole.run(16, c.context);
            for (int[] slices : new int[][] {{64, 96}, {16, 48, 80, 16}}) {
                SlicedAttention sliced =
                        new SlicedAttention(device, multiply, qkv, dy, c.shape, c.context);

                sliced.run(16, slices);

                assertThat(values(sliced.y())).isDeepEqualTo(values(whole.y()));
                assertThat(values(sliced.dQkv())).isDeepEqualTo(values(whole.dQkv()));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void unevenSlicesMeetTheWhole(DType multiply) {
        Case c = of(4, 2, 6, 9, 2, 23);
        Tensor qkv = normals(2 * 23, c.shape.columns());
        Tensor dy = normals(2 * 23, c.shape.queryColumns());
        SlicedAttention sliced = new SlicedAttention(device, multiply, qkv, dy, c.shape, 23);

        sliced.run(8, 9, 1, 13);

        Truth.Attended truth = Truth.attention(values(qkv), values(dy), 23, c.shape);
        assertClose("y", sliced.y(), truth.y(), within(1e-5, multiply));
        assertClose("dQkv", sliced.dQkv(), truth.dQkv(), within(1e-5, multiply));
    }

    /** With a window a block may be seen by some queries only, in part, or by none. */
    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void attentionToEarlierKeysInBlocksMeetsTheWhole(DType multiply) {
        List<Case> cases =
                List.of(
                        of(4, 2, 6, ALL, 1, 9),
                        of(3, 1, 7, 4, 1, 12),
                        of(2, 2, 16, 40, 1, 150),
                        of(2, 1, 16, 100, 1, 150));
        for (Case c : cases) {
            AttentionShape shape = c.shape;
            int first = 2 * c.context / 3;
            int late = c.context - first;
            int q = shape.queryColumns();
            int keyValueColumns = 2 * shape.keyColumns();
            Tensor qkv = normals(c.context, shape.columns());
            Tensor dy = normals(c.context, q);
            Tensor y = normalsWithGaps(late, q);
            Tensor logSumExp = zeros(late, shape.heads());
            Tensor dQkv = zeros(c.context, shape.columns());
            Tensor lateQkv = qkv.rows(first, late);
            Tensor dLate = dQkv.rows(first, late);
            Tensor lateDy = dy.rows(first, late);
            TokenBlocks blocks = new TokenBlocks(1, late, 0, 16);
            int cut = first / 3;
            int[][] runs = {{cut, first - cut}, {0, cut}};

            kernels.attention(multiply, lateQkv, y, logSumExp, shape, late, blocks);
            for (int[] run : runs) {
                Tensor keyValues = qkv.rows(run[0], run[1]).columns(q, keyValueColumns);
                var keys = new EarlierKeys(shape, first - run[0]);
                kernels.attentionToEarlier(
                        multiply, lateQkv.columns(0, q), keyValues, y, logSumExp, keys);
            }
            kernels.attentionBackward(
                    multiply, lateQkv, y, logSumExp, lateDy, dLate, shape, late, blocks);
            for (int[] run : runs) {
                Tensor keyValues = qkv.rows(run[0], run[1]).columns(q, keyValueColumns);
                Tensor dKeyValues = dQkv.rows(run[0], run[1]).columns(q, keyValueColumns);
                var keys = new EarlierKeys(shape, first - run[0]);
                kernels.attentionToEarlierBackward(
                        multiply,
                        lateQkv.columns(0, q),
                        keyValues,
                        y,
                        logSumExp,
                        lateDy,
                        dLate.columns(0, q),
                        dKeyValues,
                        keys);
            }

            kernels.zero(dy.rows(0, first)); // early queries have no gradient in the truth either
            Truth.Attended truth = Truth.attention(values(qkv), values(dy), c.context, shape);
            double tolerance = within(1e-5, multiply);
            assertClose("y of " + c, y, Arrays.copyOfRange(truth.y(), first, c.context), tolerance);
            assertClose("dQkv of " + c, dQkv, truth.dQkv(), tolerance);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void queriesThatSeeNoneOfTheKeysKeepWhatTheyHave(DType multiply) {
        AttentionShape shape = new AttentionShape(2, 1, 8, 10, 1);
        Tensor q = normals(20, 16);
        Tensor keyValues = normals(30, 16);
        Tensor y = normals(20, 16);
        Tensor logSumExp = normals(20, 2);
        Tensor dq = normals(20, 16);
        Tensor dKeyValues = normals(30, 16);
        double[][] yBefore = values(y);
        double[][] sumBefore = values(logSumExp);
        double[][] dqBefore = values(dq);
        double[][] dKeyValuesBefore = values(dKeyValues);
        // the last key is at position 29; query i at 35 + i sees keys from 26 + i on
        EarlierKeys keys = new EarlierKeys(shape, 35);

        kernels.attentionToEarlier(multiply, q, keyValues, y, logSumExp, keys);
        kernels.attentionToEarlierBackward(
                multiply, q, keyValues, y, logSumExp, normals(20, 16), dq, dKeyValues, keys);

        for (int i = 0; i < 20; i++) {
            boolean sees = i < 4;
            assertThat(Arrays.equals(values(y)[i], yBefore[i])).isEqualTo(!sees);
            assertThat(Arrays.equals(values(logSumExp)[i], sumBefore[i])).isEqualTo(!sees);
            assertThat(Arrays.equals(values(dq)[i], dqBefore[i])).isEqualTo(!sees);
        }
        for (int i = 0; i < 30; i++) {
            boolean isSeen = i >= 26;
            assertThat(Arrays.equals(values(dKeyValues)[i], dKeyValuesBefore[i]))
                    .isEqualTo(!isSeen);
        }
    }

    /** A key before the window must not even be multiplied with zero where it is far away. */
    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void aNaNStaysVisibleInsideItsWindowAndUnseenFarBeyond(DType multiply) {
        AttentionShape shape = new AttentionShape(2, 1, 8, 20, 1);
        Tensor qkv = normals(200, shape.columns());
        HostMatrix.of(qkv).set(3, 16, Float.NaN);
        SlicedAttention attention =
                new SlicedAttention(device, multiply, qkv, normals(200, 16), shape, 200);

        attention.run(64, 200);

        assertThat(kernels.allFinite(attention.y().rows(0, 10))).isFalse();
        assertThat(kernels.allFinite(attention.y().rows(128, 72))).isTrue();
        assertThat(kernels.allFinite(attention.dQkv().rows(128, 72))).isTrue();
    }

    @Test
    void tensorsThatDoNotFitTheShapeAreRefused() {
        AttentionShape shape = new AttentionShape(4, 2, 8, ALL, 1);
        TokenBlocks blocks = new TokenBlocks(1, 4, 0, 4);

        assertThatThrownBy(
                        () ->
                                kernels.attention(
                                        DType.F32,
                                        zeros(4, 96),
                                        zeros(4, 32),
                                        zeros(4, 4),
                                        shape,
                                        4,
                                        blocks))
                .hasMessageStartingWith("attention: expected qkv F32 [4, 64], got F32 [4, 96]");
        assertThatThrownBy(
                        () ->
                                kernels.attentionToEarlier(
                                        DType.F32,
                                        zeros(4, 32),
                                        zeros(6, 32),
                                        zeros(4, 32),
                                        zeros(4, 4),
                                        new EarlierKeys(shape, 5)))
                .hasMessageStartingWith(
                        "attentionToEarlier: expected queries at least 6 positions after the first"
                                + " key, got EarlierKeys[");
        assertThatThrownBy(() -> new AttentionShape(4, 3, 8, ALL, 1))
                .hasMessage(
                        "attention: expected heads that the key heads divide, got 4 heads and 3 key"
                                + " heads");
        assertThatThrownBy(() -> new AttentionShape(4, 2, 8, 0, 1))
                .hasMessage(
                        "attention: expected a head size and a window of 1 or more and a finite"
                                + " scale above 0, got 8, 0 and 1.0");
    }
}
