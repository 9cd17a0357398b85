package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

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

@ParameterizedClass
@MethodSource("devices")
class AttentionContractTest extends KernelContract {

    private final DeviceSettings settings;

    AttentionContractTest(DeviceSettings settings) {
        super(settings);
        this.settings = settings;
    }

    @Test
    void attentionMeetsItsFormula() {
        int[][] shapes = {{1, 1, 1, 4}, {2, 5, 3, 7}, {1, 90, 2, 16}, {2, 33, 1, 64}};
        for (int[] s : shapes) {
            int sequences = s[0];
            int context = s[1];
            int heads = s[2];
            int width = heads * s[3];
            Tensor qkv = normals(sequences * context, 3 * width);
            Tensor y = zeros(sequences * context, width);
            Tensor logSumExp = zeros(sequences * context, heads);

            kernels.attention(
                    DType.F32,
                    qkv,
                    y,
                    logSumExp,
                    AttentionShape.dense(heads, width),
                    context,
                    new TokenBlocks(sequences, context, 0, 32));

            double[][] truth = Truth.attention(values(qkv), sequences, context, heads);
            assertClose("y", y, truth);
        }
    }

    @Test
    void attentionGradientsMeetFiniteDifferences() {
        int[][] shapes = {{2, 5, 3, 7}, {1, 19, 2, 3}};
        for (int[] s : shapes) {
            int sequences = s[0];
            int context = s[1];
            int heads = s[2];
            int width = heads * s[3];
            TokenBlocks whole = new TokenBlocks(sequences, context, 0, 4);
            Tensor qkv = normals(sequences * context, 3 * width);
            Tensor y = zeros(sequences * context, width);
            Tensor logSumExp = zeros(sequences * context, heads);
            kernels.attention(
                    DType.F32,
                    qkv,
                    y,
                    logSumExp,
                    AttentionShape.dense(heads, width),
                    context,
                    whole);
            Tensor dy = normals(sequences * context, width);
            Tensor dQkv = zeros(sequences * context, 3 * width);

            kernels.attentionBackward(
                    DType.F32,
                    qkv,
                    y,
                    logSumExp,
                    dy,
                    dQkv,
                    AttentionShape.dense(heads, width),
                    context,
                    whole);

            double[][] weights = values(dy);
            double[][] truth =
                    gradient(
                            values(qkv),
                            v -> inner(Truth.attention(v, sequences, context, heads), weights));
            assertClose("dQkv", dQkv, truth, 1e-5);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void gradientsOfWholeSequencesAreThoseAddedToNothing(DType multiply) {
        for (int headWidth : new int[] {16, 64, 128}) {
            AttentionShape shape = new AttentionShape(2, 1, headWidth, 40, 0.3);
            TokenBlocks whole = new TokenBlocks(2, 75, 0, 16);
            Tensor qkv = normals(150, shape.columns());
            Tensor y = zeros(150, shape.queryColumns());
            Tensor logSumExp = zeros(150, 2);
            Tensor dy = normals(150, shape.queryColumns());
            Tensor added = zeros(150, shape.columns());
            Tensor written = normals(150, shape.columns());
            kernels.attention(multiply, qkv, y, logSumExp, shape, 75, whole);

            kernels.attentionBackward(multiply, qkv, y, logSumExp, dy, added, shape, 75, whole);
            kernels.wholeAttentionBackward(
                    multiply, qkv, y, logSumExp, dy, written, shape, 75, whole);

            assertThat(HostMatrix.of(written).allRows())
                    .as("heads of %d", headWidth)
                    .isDeepEqualTo(HostMatrix.of(added).allRows());
        }
    }

    /** A GPU rounds the factors; what it then rounds of probabilities is not in the truth. */
    @Test
    void attentionOfBFloat16MeetsTheFormulasOfRoundedFactors() {
        int[][] shapes = {
            {1, 1, 1, 4},
            {2, 5, 3, 7},
            {1, 90, 2, 16},
            {2, 33, 2, 33},
            {1, 150, 1, 64},
            {1, 70, 1, 80},
            {2, 70, 1, 128}
        };
        for (int[] s : shapes) {
            int sequences = s[0];
            int context = s[1];
            int heads = s[2];
            int headWidth = s[3];
            int width = heads * headWidth;
            TokenBlocks whole = new TokenBlocks(sequences, context, 0, 16);
            Tensor qkv = normals(sequences * context, 3 * width);
            Tensor y = normalsWithGaps(sequences * context, width);
            Tensor logSumExp = zeros(sequences * context, heads);
            Tensor dy = normalsWithGaps(sequences * context, width);
            Tensor dQkv = zeros(sequences * context, 3 * width);

            kernels.attention(
                    DType.BF16,
                    qkv,
                    y,
                    logSumExp,
                    AttentionShape.dense(heads, width),
                    context,
                    whole);
            kernels.attentionBackward(
                    DType.BF16,
                    qkv,
                    y,
                    logSumExp,
                    dy,
                    dQkv,
                    AttentionShape.dense(heads, width),
                    context,
                    whole);

            double tolerance = within(1e-5, DType.BF16);
            for (int b = 0; b < sequences; b++) {
                for (int h = 0; h < heads; h++) {
                    Tensor head = qkv.rows(b * context, context);
                    double[][] in = ofHead(head, h, headWidth, 3);
                    double[][] gradient = ofHead(dy.rows(b * context, context), h, headWidth, 1);
                    Truth.HeadGradients truth =
                            rounds(DType.BF16)
                                    ? Truth.attentionOfOneHead(
                                            Truth.roundedToBFloat16(in),
                                            Truth.roundedToBFloat16(gradient))
                                    : Truth.attentionOfOneHead(in, gradient);
                    String which = " of shape %s, head %d".formatted(Arrays.toString(s), h);
                    Tensor of = y.rows(b * context, context);
                    assertClose(
                            "y" + which,
                            of.columns(h * headWidth, headWidth),
                            truth.y(),
                            tolerance);
                    Tensor gradients = dQkv.rows(b * context, context);
                    for (int part = 0; part < 3; part++) {
                        assertClose(
                                List.of("dq", "dk", "dv").get(part) + which,
                                gradients.columns(part * width + h * headWidth, headWidth),
                                columns(truth.dQkv(), part * headWidth, headWidth),
                                tolerance);
                    }
                }
            }
        }
    }

    @Test
    void onlyGpusRoundTheFactorsOfAttention() {
        Tensor qkv = normals(40, 3 * 24);
        Tensor dy = normals(40, 24);
        SlicedAttention floats = new SlicedAttention(device, DType.F32, qkv, dy, 2, 40);
        SlicedAttention halves = new SlicedAttention(device, DType.BF16, qkv, dy, 2, 40);

        floats.run(16, 40);
        halves.run(16, 40);

        boolean sameY = Arrays.deepEquals(values(halves.y()), values(floats.y()));
        boolean sameGradients = Arrays.deepEquals(values(halves.dQkv()), values(floats.dQkv()));
        assertThat(sameY).isEqualTo(!rounds(DType.BF16));
        assertThat(sameGradients).isEqualTo(!rounds(DType.BF16));
    }

    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void slicesOnTheGridHaveTheBitsOfTheWhole(DType multiply) {
        int context = 208;
        for (int headWidth : new int[] {20, 72}) {
            Tensor qkv = normals(context, 3 * headWidth);
            Tensor dy = normals(context, headWidth);
            SlicedAttention whole = new SlicedAttention(device, multiply, qkv, dy, 1, context);
            whole.run(16, context);
            for (int[] slices : new int[][] {{64, 144}, {128, 80}, {16, 48, 112, 32}}) {
                SlicedAttention sliced = new SlicedAttention(device, multiply, qkv, dy, 1, context);

                sliced.run(16, slices);

                assertThat(values(sliced.y())).isDeepEqualTo(values(whole.y()));
                assertThat(values(sliced.dQkv())).isDeepEqualTo(values(whole.dQkv()));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void aNaNStaysVisible(DType multiply) {
        for (int column : new int[] {3, 8 + 3, 16 + 3, -1}) {
            Tensor qkv = normals(40, 3 * 8);
            Tensor dy = normals(40, 8);
            if (column >= 0) {
                HostMatrix.of(qkv).set(7, column, Float.NaN);
            } else {
                HostMatrix.of(dy).set(7, 3, Float.NaN);
            }
            SlicedAttention attention = new SlicedAttention(device, multiply, qkv, dy, 1, 40);

            attention.run(16, 40);

            assertThat(kernels.allFinite(attention.y())).isEqualTo(column < 0);
            assertThat(kernels.allFinite(attention.dQkv())).isFalse();
        }
    }

    private boolean rounds(DType multiply) {
        return multiply == DType.BF16 && settings.kind() == Kind.CUDA;
    }

    private double within(double exact, DType multiply) {
        return rounds(multiply) ? 1e-2 : exact;
    }

    /** The columns of a head in each of so many parts that lie side by side. */
    private static double[][] ofHead(Tensor all, int head, int headWidth, int parts) {
        int width = all.columns() / parts;
        double[][] of = new double[all.rows()][parts * headWidth];
        for (int part = 0; part < parts; part++) {
            double[][] from = values(all.columns(part * width + head * headWidth, headWidth));
            for (int i = 0; i < of.length; i++) {
                System.arraycopy(from[i], 0, of[i], part * headWidth, headWidth);
            }
        }
        return of;
    }

    private static double[][] columns(double[][] all, int first, int count) {
        return Arrays.stream(all)
                .map(row -> Arrays.copyOfRange(row, first, first + count))
                .toArray(double[][]::new);
    }

    /** Slices that do not fall on the grid: equal within tolerance only. */
    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void unevenSlicesMeetTheWhole(DType multiply) {
        int context = 23;
        Tensor qkv = normals(2 * context, 3 * 12);
        Tensor dy = normals(2 * context, 12);
        TokenBlocks whole = new TokenBlocks(2, context, 0, 8);
        SlicedAttention unsliced = new SlicedAttention(device, multiply, qkv, dy, 3, context);
        SlicedAttention sliced = new SlicedAttention(device, multiply, qkv, dy, 3, context);

        unsliced.run(8, context);
        sliced.run(8, 9, 1, 13);

        double tolerance = within(1e-5, multiply);
        assertClose("y", sliced.y(), values(unsliced.y()), tolerance);
        assertClose("dQkv", sliced.dQkv(), values(unsliced.dQkv()), tolerance);
        assertClose(
                "y", unsliced.y(), Truth.attention(values(qkv), 2, whole.tokens(), 3), tolerance);
    }

    /** Keys arrive in blocks, in any order: the result is attention to all of them. */
    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void attentionToEarlierKeysInBlocksMeetsTheWhole(DType multiply) {
        int[][] shapes = {{9, 6, 2, 7}, {150, 80, 2, 16}, {40, 33, 1, 64}, {3, 1, 3, 5}};
        for (int[] s : shapes) {
            int context = s[0];
            int first = s[1];
            int heads = s[2];
            int width = heads * s[3];
            Tensor qkv = normals(context, 3 * width);
            Tensor dy = normals(context, width);
            SlicedAttention whole = new SlicedAttention(device, multiply, qkv, dy, heads, context);
            whole.run(16, first, context - first);
            SlicedAttention early =
                    new SlicedAttention(
                            device, multiply, qkv.rows(0, first), dy.rows(0, first), heads, first);
            early.run(16, first);
            Tensor late = qkv.rows(first, context - first);
            TokenBlocks blocks = new TokenBlocks(1, late.rows(), 0, 16);
            Tensor q = late.columns(0, width);
            Tensor y = normalsWithGaps(late.rows(), width);
            Tensor logSumExp = zeros(late.rows(), heads);
            Tensor dLate = zeros(late.rows(), 3 * width);
            Tensor dEarly = early.dQkv();
            Tensor dq = dLate.columns(0, width);
            Tensor lateDy = dy.rows(first, late.rows());
            int cut = first / 3;
            EarlierKeys earlier = new EarlierKeys(AttentionShape.dense(heads, width), first);
            int[][] runs = {{cut, first - cut}, {0, cut}};

            kernels.attention(
                    multiply,
                    late,
                    y,
                    logSumExp,
                    AttentionShape.dense(heads, width),
                    late.rows(),
                    blocks);
            for (int[] run : runs) {
                Tensor keyValues = qkv.rows(run[0], run[1]).columns(width, 2 * width);
                kernels.attentionToEarlier(multiply, q, keyValues, y, logSumExp, earlier);
            }
            kernels.attentionBackward(
                    multiply,
                    late,
                    y,
                    logSumExp,
                    lateDy,
                    dLate,
                    AttentionShape.dense(heads, width),
                    late.rows(),
                    blocks);
            for (int[] run : runs) {
                Tensor keyValues = qkv.rows(run[0], run[1]).columns(width, 2 * width);
                Tensor dKeyValues = dEarly.rows(run[0], run[1]).columns(width, 2 * width);
                kernels.attentionToEarlierBackward(
                        multiply, q, keyValues, y, logSumExp, lateDy, dq, dKeyValues, earlier);
            }

            double[][] truth = Truth.attention(values(qkv), 1, context, heads);
            double tolerance = within(1e-5, multiply);
            assertClose("y", y, Arrays.copyOfRange(truth, first, context), tolerance);
            double[][] gradients = values(whole.dQkv());
            assertClose("late", dLate, Arrays.copyOfRange(gradients, first, context), tolerance);
            assertClose("early", dEarly, Arrays.copyOfRange(gradients, 0, first), tolerance);
        }
    }

    /** No matter how far apart the scores of two blocks are, or which block comes first. */
    @ParameterizedTest
    @EnumSource(names = {"F32", "BF16"})
    void blocksOfVeryDifferentScoresAreMergedWithoutOverflow(DType multiply) {
        Tensor qkv = normals(12, 3 * 8);
        for (int row : new int[] {1, 2, 3}) {
            HostMatrix.of(qkv).set(row, 8, 1000);
        }
        for (int row = 8; row < 12; row++) {
            HostMatrix.of(qkv).set(row, 0, row % 2 == 0 ? 1 : -1);
        }
        Tensor late = qkv.rows(8, 4);
        AttentionShape shape = AttentionShape.dense(2, 8);
        EarlierKeys earlier = new EarlierKeys(shape, 8);
        Tensor y = zeros(4, 8);
        Tensor logSumExp = zeros(4, 2);

        kernels.attention(multiply, late, y, logSumExp, shape, 4, new TokenBlocks(1, 4, 0, 4));
        kernels.attentionToEarlier(
                multiply, late.columns(0, 8), qkv.rows(4, 4).columns(8, 16), y, logSumExp, earlier);
        kernels.attentionToEarlier(
                multiply, late.columns(0, 8), qkv.rows(0, 4).columns(8, 16), y, logSumExp, earlier);

        double[][] scores = Truth.attention(shifted(values(qkv)), 1, 12, 2);
        assertClose("y", y, Arrays.copyOfRange(scores, 8, 12), within(2e-4, multiply));
    }

    /**
     * Softmax does not change if all keys are moved by the same vector; exponentials stay small.
     */
    private static double[][] shifted(double[][] qkv) {
        for (double[] row : qkv) {
            row[8] -= 500;
        }
        return qkv;
    }
}
