package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Results that a GPU writes as bf16 are those that it writes in F32, rounded: to the bit. These
 * have their own truth in double precision elsewhere; what has no other form is compared with it
 * here. Rows of GPT-2 and of others, dense and with gaps that allow no wide loads.
 */
@ParameterizedClass(allowZeroInvocations = true) // none without an emulator
@MethodSource("gpus")
class RoundedResultsContractTest extends KernelContract {
    /** Of a rounded number: half a unit of its last place of 8 bits. */
    private static final double HALF_UNIT = 1.0 / 256;

    private static final List<Integer> WIDTHS = List.of(768, 1600, 2100, 37);
    private int halves;

    static Stream<DeviceSettings> gpus() {
        return EmulatedGpus.devices();
    }

    RoundedResultsContractTest(DeviceSettings settings) {
        super(settings);
    }

    private Tensor halves(int rows, int columns) {
        int stride = (columns + 7) / 8 * 8;
        return device.memory()
                .tensor("halves " + halves++, DType.BF16, rows, stride)
                .columns(0, columns);
    }

    private Tensor rounded(Tensor x) {
        Tensor y = halves(x.rows(), x.columns());
        kernels.copy(x, y);
        return y;
    }

    private static void assertSame(String what, Tensor actual, Tensor expected) {
        assertThat(HostMatrix.of(actual).allRows())
                .as(what)
                .isDeepEqualTo(HostMatrix.of(expected).allRows());
    }

    @Test
    void normsAreRounded() {
        for (int width : WIDTHS) {
            int rows = 7;
            Tensor x = width % 8 == 0 ? normals(rows, width) : normalsWithGaps(rows, width);
            Tensor gain = normals(1, width);
            Tensor bias = normals(1, width);
            Tensor y = zeros(rows, width);
            Tensor mean = zeros(1, rows);
            Tensor rstd = zeros(1, rows);
            Tensor otherMean = zeros(1, rows);
            Tensor otherRstd = zeros(1, rows);
            Tensor half = halves(rows, width);

            kernels.layerNorm(x, gain, bias, y, mean, rstd, 1e-5);
            kernels.layerNorm(x, gain, bias, half, otherMean, otherRstd, 1e-5);
            assertSame("layer norm of " + width, half, rounded(y));
            assertSame("means", otherMean, mean);
            assertSame("deviations", otherRstd, rstd);
            double[][] truth = Truth.layerNorm(values(x), values(gain)[0], values(bias)[0]);
            assertClose("layer norm of " + width, half, truth, HALF_UNIT);

            kernels.rmsNorm(x, gain, y, rstd, 1e-5);
            kernels.rmsNorm(x, gain, half, otherRstd, 1e-5);
            assertSame("root mean square norm of " + width, half, rounded(y));
            assertSame("root mean squares", otherRstd, rstd);
        }
    }

    @Test
    void geluAndItsGradientsAreRounded() {
        for (TokenBlocks blocks :
                List.of(new TokenBlocks(2, 11, 5, 4), new TokenBlocks(1, 9, 0, 128))) {
            for (int width : List.of(3072, 132, 37)) {
                for (Gelu form : Gelu.values()) {
                    checkGelu(blocks, width, form);
                }
            }
        }
    }

    private void checkGelu(TokenBlocks blocks, int width, Gelu form) {
        int rows = blocks.rows();
        Tensor pre = width % 4 == 0 ? normals(rows, width) : normalsWithGaps(rows, width);
        Tensor bias = normals(1, width);
        Tensor dy = normals(rows, width);
        Tensor completed = zeros(rows, width);
        Tensor y = zeros(rows, width);
        Tensor gradient = zeros(rows, width);
        Tensor dBias = normals(1, width);
        Tensor otherBias = zeros(1, width);
        Tensor half = halves(rows, width);
        Tensor dPre = halves(rows, width);
        kernels.copy(pre, completed);
        kernels.copy(dy, gradient);
        kernels.copy(dBias, otherBias);

        kernels.biasGelu(completed, bias, y, form);
        kernels.geluBackward(completed, gradient, form);
        kernels.biasGradient(gradient, dBias, blocks);
        double[][] before = values(pre);
        kernels.geluRounded(pre, bias, half, form);
        kernels.geluBackwardRounded(pre, bias, dy, form, dPre, otherBias, blocks);

        assertSame(form + " of " + width, half, rounded(y));
        assertSame("gradient of " + form + " of " + width, dPre, rounded(gradient));
        assertSame("gradient of the bias of " + width, otherBias, dBias);
        assertThat(values(pre)).isDeepEqualTo(before);
        double[][] input = values(completed);
        assertClose(
                form + " of " + width,
                half,
                form == Gelu.TANH ? Truth.gelu(input) : Truth.exactGelu(input),
                HALF_UNIT);

        kernels.zero(dPre);
        kernels.geluBackwardRounded(pre, bias, dy, form, dPre, null, blocks);
        assertSame("without the gradient of a bias", dPre, rounded(gradient));
    }

    @Test
    void gradientsOfBiasesAreSumsOfWhatIsNotRounded() {
        TokenBlocks blocks = new TokenBlocks(3, 40, 0, 16);
        for (int width : List.of(2304, 768, 37)) {
            Tensor dy = width % 4 == 0 ? normals(120, width) : normalsWithGaps(120, width);
            Tensor sums = zeros(1, width);
            Tensor same = zeros(1, width);
            Tensor half = halves(120, width);

            kernels.biasGradient(dy, sums, blocks);
            kernels.biasGradientRounded(dy, same, blocks, half);

            assertSame("sums of " + width, same, sums);
            assertSame("rows of " + width, half, rounded(dy));
        }
    }

    @Test
    void gatesAndTheirGradientsAreRounded() {
        for (int width : List.of(96, 38)) {
            Tensor gated = normals(6, 2 * width);
            Tensor dz = normals(6, width);
            Tensor z = zeros(6, width);
            Tensor dGated = zeros(6, 2 * width);
            Tensor half = halves(6, width);
            Tensor dHalf = halves(6, 2 * width);

            kernels.swiGlu(gated, z);
            kernels.swiGlu(gated, half);
            kernels.swiGluBackward(gated, dz, dGated);
            kernels.swiGluBackward(gated, dz, dHalf);

            assertSame("gates of " + width, half, rounded(z));
            assertSame("gradients of gates of " + width, dHalf, rounded(dGated));
            assertClose("gates", half, Truth.swiGlu(values(gated)), HALF_UNIT);
        }
    }

    /**
     * Heads of several widths, alone and in groups, whole and as slices; rows that allow no wide
     * loads.
     */
    @Test
    void attentionOfRoundedQueriesKeysAndValuesIsTheSame() {
        int tokens = 70;
        for (AttentionShape shape :
                List.of(
                        AttentionShape.dense(2, 128),
                        AttentionShape.dense(1, 128),
                        AttentionShape.dense(3, 21),
                        new AttentionShape(4, 2, 32, 20, 0.2))) {
            for (TokenBlocks blocks :
                    List.of(
                            new TokenBlocks(2, tokens, 0, tokens),
                            new TokenBlocks(2, tokens - 16, 16, 16))) {
                Tensor qkv = normals(2 * tokens, shape.columns());
                Tensor half = rounded(qkv);
                Tensor dy = normals(blocks.rows(), shape.queryColumns());

                assertThat(attention(half, dy, shape, tokens, blocks))
                        .as("%s, %s", shape, blocks)
                        .isDeepEqualTo(attention(qkv, dy, shape, tokens, blocks));
            }
        }
    }

    private float[][][] attention(
            Tensor qkv, Tensor dy, AttentionShape shape, int tokens, TokenBlocks blocks) {
        Tensor y = zeros(blocks.rows(), shape.queryColumns());
        Tensor lse = zeros(blocks.rows(), shape.heads());
        Tensor dQkv = zeros(qkv.rows(), qkv.columns());
        kernels.attention(DType.BF16, qkv, y, lse, shape, tokens, blocks);
        kernels.attentionBackward(DType.BF16, qkv, y, lse, dy, dQkv, shape, tokens, blocks);
        return new float[][][] {
            HostMatrix.of(y).allRows(), HostMatrix.of(lse).allRows(), HostMatrix.of(dQkv).allRows()
        };
    }

    @Test
    void sumsWithBiasesAreRounded() {
        for (int width : List.of(2304, 768, 37)) {
            Tensor x = width % 4 == 0 ? normals(9, width) : normalsWithGaps(9, width);
            Tensor bias = normals(1, width);
            Tensor half = halves(9, width);
            double[][] before = values(x);

            kernels.addBiasRounded(x, bias, half);
            assertThat(values(x)).isDeepEqualTo(before);
            kernels.addBias(x, bias);
            assertSame("sums of " + width, half, rounded(x));
        }
    }

    /** Rows of which a block of a GPU holds all, some, or has to read while it writes. */
    @Test
    void lossesOfWholeVocabulariesAndTheirGradientsAreRight() {
        for (int vocabulary : List.of(50_257, 128_256, 4_099, 37, 3)) {
            for (boolean rounds : new boolean[] {true, false}) {
                checkLosses(
                        vocabulary, rounds, vocabulary == 4_099 ? 7 : (vocabulary + 15) / 16 * 16);
            }
        }
    }

    private void checkLosses(int vocabulary, boolean rounds, int stride) {
        int rows = 2;
        float scale = 0.25f;
        int wide = Math.max(stride, vocabulary);
        Tensor logits =
                normals(rows, stride < vocabulary ? wide + stride : wide).columns(0, vocabulary);
        Tensor targets = indices(rows, vocabulary);
        HostMatrix.of(targets).setInt(0, 0, vocabulary - 1);
        Tensor losses = zeros(1, rows);
        Tensor alone = zeros(1, rows);
        Tensor dLogits =
                rounds
                        ? new Tensor(
                                logits.buffer(),
                                logits.offsetBytes(),
                                DType.BF16,
                                rows,
                                vocabulary,
                                2 * logits.stride())
                        : logits;
        double[][] before = values(logits);
        int[] at = integers(targets);

        kernels.crossEntropyOfRows(logits, targets, alone, 0, dLogits);
        assertThat(values(logits)).isDeepEqualTo(before);
        kernels.crossEntropyOfRows(logits, targets, losses, scale, dLogits);

        double[] truth = Truth.crossEntropy(before, at);
        double[][] slope = new double[rows][vocabulary];
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < vocabulary; j++) {
                double probability = Math.exp(before[i][j] - before[i][at[i]] - truth[i]);
                slope[i][j] = (probability - (j == at[i] ? 1 : 0)) * scale;
            }
        }
        assertClose("losses of " + vocabulary, losses, new double[][] {truth}, 2e-6);
        assertSame("losses alone", alone, losses);
        assertClose("dLogits of " + vocabulary, dLogits, slope, rounds ? HALF_UNIT : 1e-5);
        HostMatrix gradient = HostMatrix.of(dLogits);
        for (int j = 0; j < vocabulary; j++) { // small ones too
            double error =
                    rounds ? HALF_UNIT * Math.abs(slope[1][j]) : 1e-4 * Math.abs(slope[1][j]);
            if (Math.abs(gradient.get(1, j) - slope[1][j]) > error + 1e-9) {
                assertThat((double) gradient.get(1, j))
                        .isCloseTo(slope[1][j], within(error + 1e-9));
            }
        }
    }

    @Test
    void nanAndInfinitiesAreFoundInHalves() {
        for (float bad : new float[] {Float.NaN, Float.NEGATIVE_INFINITY}) {
            Tensor half = rounded(normals(5, 37));
            assertThat(kernels.allFinite(half)).isTrue();
            HostMatrix.of(half).set(4, 36, bad);
            assertThat(kernels.allFinite(half)).isFalse();
        }
    }

    @Test
    void aDeviceThatKeepsF32SaysSo() {
        try (var cpu = Devices.open(DeviceSettings.DEFAULTS.withKind(Kind.CPU))) {
            Tensor x = cpu.memory().tensor("x", DType.F32, 4, 8);
            Tensor row = cpu.memory().tensor("row", DType.F32, 1, 8);
            Tensor half = cpu.memory().tensor("half", DType.BF16, 4, 8);

            assertThat(cpu.kernels().writesBFloat16()).isFalse();
            assertThatThrownBy(() -> cpu.kernels().rmsNorm(x, row, half, row.columns(0, 4), 1e-5))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("expected y F32 [4, 8], got BF16");
            assertThatThrownBy(() -> cpu.kernels().geluRounded(x, row, half, Gelu.TANH))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("expected a device that writes bf16");
        }
    }
}
