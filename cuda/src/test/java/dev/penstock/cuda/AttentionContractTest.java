package dev.penstock.cuda;

import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

@ParameterizedClass
@MethodSource("devices")
class AttentionContractTest extends KernelContract {

    AttentionContractTest(DeviceSettings settings) {
        super(settings);
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
                    qkv, y, logSumExp, heads, context, new TokenBlocks(sequences, context, 0, 32));

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
            kernels.attention(qkv, y, logSumExp, heads, context, whole);
            Tensor dy = normals(sequences * context, width);
            Tensor dQkv = zeros(sequences * context, 3 * width);

            kernels.attentionBackward(qkv, y, logSumExp, dy, dQkv, heads, context, whole);

            double[][] weights = values(dy);
            double[][] truth =
                    gradient(
                            values(qkv),
                            v -> inner(Truth.attention(v, sequences, context, heads), weights));
            assertClose("dQkv", dQkv, truth, 1e-5);
        }
    }

    /** Slices that do not fall on the grid: equal within tolerance only. */
    @Test
    void unevenSlicesMeetTheWhole() {
        int context = 23;
        Tensor qkv = normals(2 * context, 3 * 12);
        Tensor dy = normals(2 * context, 12);
        TokenBlocks whole = new TokenBlocks(2, context, 0, 8);
        SlicedAttention unsliced = new SlicedAttention(device, qkv, dy, 3, context);
        SlicedAttention sliced = new SlicedAttention(device, qkv, dy, 3, context);

        unsliced.run(8, context);
        sliced.run(8, 9, 1, 13);

        assertClose("y", sliced.y(), values(unsliced.y()));
        assertClose("dQkv", sliced.dQkv(), values(unsliced.dQkv()), 1e-5);
        assertClose("y", unsliced.y(), Truth.attention(values(qkv), 2, whole.tokens(), 3));
    }

    /** Keys arrive in blocks, in any order: the result is attention to all of them. */
    @Test
    void attentionToEarlierKeysInBlocksMeetsTheWhole() {
        int[][] shapes = {{9, 6, 2, 7}, {150, 80, 2, 16}, {40, 33, 1, 64}, {3, 1, 3, 5}};
        for (int[] s : shapes) {
            int context = s[0];
            int first = s[1];
            int heads = s[2];
            int width = heads * s[3];
            Tensor qkv = normals(context, 3 * width);
            Tensor dy = normals(context, width);
            SlicedAttention whole = new SlicedAttention(device, qkv, dy, heads, context);
            whole.run(16, first, context - first);
            SlicedAttention early =
                    new SlicedAttention(
                            device, qkv.rows(0, first), dy.rows(0, first), heads, first);
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
            int[][] runs = {{cut, first - cut}, {0, cut}};

            kernels.attention(late, y, logSumExp, heads, late.rows(), blocks);
            for (int[] run : runs) {
                Tensor keyValues = qkv.rows(run[0], run[1]).columns(width, 2 * width);
                kernels.attentionToEarlier(q, keyValues, y, logSumExp, heads);
            }
            kernels.attentionBackward(
                    late, y, logSumExp, lateDy, dLate, heads, late.rows(), blocks);
            for (int[] run : runs) {
                Tensor keyValues = qkv.rows(run[0], run[1]).columns(width, 2 * width);
                Tensor dKeyValues = dEarly.rows(run[0], run[1]).columns(width, 2 * width);
                kernels.attentionToEarlierBackward(
                        q, keyValues, y, logSumExp, lateDy, dq, dKeyValues, heads);
            }

            double[][] truth = Truth.attention(values(qkv), 1, context, heads);
            assertClose("y", y, Arrays.copyOfRange(truth, first, context));
            double[][] gradients = values(whole.dQkv());
            assertClose("late", dLate, Arrays.copyOfRange(gradients, first, context), 1e-5);
            assertClose("early", dEarly, Arrays.copyOfRange(gradients, 0, first), 1e-5);
        }
    }

    /** No matter how far apart the scores of two blocks are, or which block comes first. */
    @Test
    void blocksOfVeryDifferentScoresAreMergedWithoutOverflow() {
        Tensor qkv = normals(12, 3 * 8);
        for (int row : new int[] {1, 2, 3}) {
            HostMatrix.of(qkv).set(row, 8, 1000);
        }
        for (int row = 8; row < 12; row++) {
            HostMatrix.of(qkv).set(row, 0, row % 2 == 0 ? 1 : -1);
        }
        Tensor late = qkv.rows(8, 4);
        Tensor y = zeros(4, 8);
        Tensor logSumExp = zeros(4, 2);

        kernels.attention(late, y, logSumExp, 2, 4, new TokenBlocks(1, 4, 0, 4));
        kernels.attentionToEarlier(
                late.columns(0, 8), qkv.rows(4, 4).columns(8, 16), y, logSumExp, 2);
        kernels.attentionToEarlier(
                late.columns(0, 8), qkv.rows(0, 4).columns(8, 16), y, logSumExp, 2);

        double[][] scores = Truth.attention(shifted(values(qkv)), 1, 12, 2);
        assertClose("y", y, Arrays.copyOfRange(scores, 8, 12), 2e-4);
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
