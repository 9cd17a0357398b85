package dev.penstock.cuda;

import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
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
}
