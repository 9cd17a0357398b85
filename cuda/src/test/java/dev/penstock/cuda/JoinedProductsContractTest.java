package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Products that do what follows them, against products in F32 and the kernels that follow those;
 * and the kernels that read what such products wrote as bf16. Where cublasLt has no algorithm, and
 * for rows that it does not take, the results are the same.
 */
@ParameterizedClass(allowZeroInvocations = true) // none without cuBLAS
@MethodSource("gpus")
class JoinedProductsContractTest extends KernelContract {
    private static final double HALF_UNIT = 1.0 / 256;

    /** The last is no multiple of what rows have to begin at. */
    private static final List<Integer> WIDTHS = List.of(64, 24, 37);

    /** Of cublasLtEpilogue_t: none, bias, GELU with bias, gradient of GELU. */
    private static final List<String> LACKING = List.of("", "1", "4", "164", "192");

    private static final int ROWS = 9;
    private static final int DEPTH = 40;
    private int made;

    static Stream<DeviceSettings> gpus() {
        return EmulatedGpus.withCublas();
    }

    JoinedProductsContractTest(DeviceSettings settings) {
        super(settings);
    }

    @AfterEach
    void asItWas() {
        EmulatedGpus.set("LACKS_EPILOGUE", "");
    }

    private Tensor halves(int rows, int columns) {
        int stride = columns == 37 ? 37 : (columns + 7) / 8 * 8;
        return device.memory()
                .tensor("halves " + made++, DType.BF16, rows, stride)
                .columns(0, columns);
    }

    private Tensor rounded(Tensor x) {
        Tensor y = halves(x.rows(), x.columns());
        kernels.copy(x, y);
        return y;
    }

    /** Of numbers that bf16 holds, so that rounding a bias changes nothing. */
    private Tensor bias(int columns) {
        Tensor bias = normals(1, columns);
        kernels.copy(rounded(bias), bias);
        return bias;
    }

    @Test
    void whatFollowsAProductIsWhatKernelsDo() {
        for (int width : WIDTHS) {
            for (String lacking : LACKING) {
                EmulatedGpus.set("LACKS_EPILOGUE", lacking);
                // an algorithm is kept for a shape, so each has its own
                int rows = ROWS + LACKING.indexOf(lacking);
                checkForward(rows, width, "%d without %s".formatted(width, lacking));
                checkBackward(rows, width, "%d without %s".formatted(width, lacking));
            }
        }
    }

    private void checkForward(int rows, int width, String of) {
        Tensor x = rounded(normals(rows, DEPTH));
        Tensor w = rounded(normals(DEPTH, width));
        Tensor bias = bias(width);
        Tensor residual = normals(rows, width);
        Tensor y = zeros(rows, width);
        Tensor gelu = zeros(rows, width);
        Tensor half = halves(rows, width);
        Tensor pre = halves(rows, width);
        Tensor sum = zeros(rows, width);

        kernels.gemm(DType.BF16, false, x, false, w, y, false);
        kernels.gemmThen(x, false, w, new Epilogue.Rounding(), half);
        assertClose("product of " + of, half, values(y), HALF_UNIT);

        kernels.gemmThen(x, false, w, new Epilogue.BiasAndResidual(bias, residual), sum);
        kernels.gemm(DType.BF16, false, x, false, w, gelu, false);
        kernels.addBiasAndResidual(gelu, bias, residual);
        assertClose("sum of " + of, sum, values(gelu), 1e-5);

        kernels.gemmThen(x, false, w, new Epilogue.Bias(bias), half);
        kernels.addBias(y, bias);
        assertClose("with a bias, of " + of, half, values(y), HALF_UNIT);

        kernels.gemm(DType.BF16, false, x, false, w, y, false);
        kernels.gemmThen(x, false, w, new Epilogue.BiasAndGelu(bias, pre), half);
        kernels.biasGelu(y, bias, gelu, Gelu.TANH);
        assertClose("input of GELU of " + of, pre, values(y), HALF_UNIT);
        assertClose("GELU of " + of, half, values(gelu), HALF_UNIT);
    }

    private void checkBackward(int rows, int width, String of) {
        Tensor dy = rounded(normals(rows, DEPTH));
        Tensor w = rounded(normals(width, DEPTH));
        Tensor pre = rounded(normals(rows, width));
        Tensor input = zeros(rows, width);
        Tensor dx = zeros(rows, width);
        Tensor half = halves(rows, width);

        kernels.gemm(DType.BF16, false, dy, true, w, dx, false);
        kernels.copy(pre, input);
        kernels.geluBackward(input, dx, Gelu.TANH);
        kernels.gemmThen(dy, true, w, new Epilogue.GeluGradient(pre), half);
        assertClose("gradient through GELU of " + of, half, values(dx), HALF_UNIT);
    }

    /** The columns beyond the last multiple of 8 are a kernel's. */
    @Test
    void logitsOfAnOddVocabularyAreRounded() {
        int vocabulary = 1_029;
        Tensor x = rounded(normals(ROWS, DEPTH));
        Tensor w = rounded(normals(vocabulary, DEPTH));
        Tensor y = zeros(ROWS, vocabulary);
        Tensor half = halves(ROWS, vocabulary);

        kernels.gemm(DType.BF16, false, x, true, w, y, false);
        kernels.gemmThen(x, true, w, new Epilogue.Rounding(), half);

        assertClose("logits", half, values(y), HALF_UNIT);
    }

    @Test
    void gradientsOfBiasesAreSumsOfRoundedRowsToo() {
        TokenBlocks blocks = new TokenBlocks(3, 40, 0, 16);
        for (int width : List.of(768, 37)) {
            Tensor dy = rounded(normals(120, width));
            Tensor wide = zeros(120, width);
            Tensor sums = normals(1, width);
            Tensor same = zeros(1, width);
            kernels.copy(dy, wide);
            kernels.copy(sums, same);

            kernels.biasGradient(wide, sums, blocks);
            kernels.biasGradient(dy, same, blocks);

            assertSame("sums of " + width, same, sums);
        }
    }

    @Test
    void lossesOfRoundedLogitsAreThoseOfTheNumbersThatTheyHold() {
        for (int vocabulary : List.of(50_257, 4_099, 37, 3)) {
            Tensor logits = rounded(normals(2, vocabulary));
            Tensor wide = zeros(2, vocabulary);
            Tensor targets = indices(2, vocabulary);
            HostMatrix.of(targets).setInt(0, 0, vocabulary - 1);
            Tensor losses = zeros(1, 2);
            Tensor alone = zeros(1, 2);
            Tensor same = zeros(1, 2);
            kernels.copy(logits, wide);
            double[][] before = values(logits);

            kernels.crossEntropyOfRows(wide, targets, losses, 0.25f, wide);
            kernels.crossEntropyOfRows(logits, targets, alone, 0, logits);
            assertThat(values(logits)).isDeepEqualTo(before);
            kernels.crossEntropyOfRows(logits, targets, same, 0.25f, logits);

            assertClose("losses of " + vocabulary, same, values(losses), 1e-6);
            assertClose("losses alone of " + vocabulary, alone, values(losses), 1e-6);
            assertSame("gradients of " + vocabulary, logits, rounded(wide));
        }
    }

    /** Rows of a warp, and columns of a block, in one pass and in two. */
    @Test
    void backwardsOfLayerNormsReadRoundedGradients() {
        for (int width : List.of(40, 800, 1_100)) {
            for (TokenBlocks blocks :
                    List.of(new TokenBlocks(1, 9, 0, 4), new TokenBlocks(2, 33, 0, 1))) {
                int rows = blocks.rows();
                Tensor dy = rounded(normals(rows, width));
                Tensor wide = zeros(rows, width);
                kernels.copy(dy, wide);
                Tensor x = normals(rows, width);
                Tensor gain = normals(1, width);
                Tensor mean = normals(1, rows);
                Tensor rstd = normals(1, rows);
                Tensor dx = normals(rows, width);
                Tensor same = copied(dx);
                List<Tensor> sums = List.of(zeros(1, width), zeros(1, width));
                List<Tensor> sameSums = List.of(zeros(1, width), zeros(1, width));

                kernels.layerNormBackward(
                        wide, x, gain, mean, rstd, dx, sums.get(0), sums.get(1), blocks);
                kernels.layerNormBackward(
                        dy, x, gain, mean, rstd, same, sameSums.get(0), sameSums.get(1), blocks);

                assertSame("dx", same, dx);
                assertSame("gradient of gains", sameSums.get(0), sums.get(0));
                assertSame("gradient of biases", sameSums.get(1), sums.get(1));
            }
        }
    }

    @Test
    void backwardsOfWholeAttentionReadAndWriteRoundedGradients() {
        int tokens = 70;
        TokenBlocks blocks = new TokenBlocks(2, tokens, 0, tokens);
        for (AttentionShape shape :
                List.of(AttentionShape.dense(2, 128), AttentionShape.dense(1, 128))) {
            Tensor qkv = rounded(normals(2 * tokens, shape.columns()));
            Tensor dy = rounded(normals(blocks.rows(), shape.queryColumns()));
            Tensor wide = zeros(blocks.rows(), shape.queryColumns());
            kernels.copy(dy, wide);
            Tensor y = zeros(blocks.rows(), shape.queryColumns());
            Tensor lse = zeros(blocks.rows(), shape.heads());
            Tensor dQkv = zeros(qkv.rows(), qkv.columns());
            Tensor half = halves(qkv.rows(), qkv.columns());
            kernels.attention(DType.BF16, qkv, y, lse, shape, tokens, blocks);

            kernels.wholeAttentionBackward(
                    DType.BF16, qkv, y, lse, wide, dQkv, shape, tokens, blocks);
            kernels.wholeAttentionBackward(
                    DType.BF16, qkv, y, lse, dy, half, shape, tokens, blocks);

            assertSame("gradients of " + shape, half, rounded(dQkv));
        }
    }

    private static void assertSame(String what, Tensor actual, Tensor expected) {
        assertThat(HostMatrix.of(actual).allRows())
                .as(what)
                .isDeepEqualTo(HostMatrix.of(expected).allRows());
    }

    @Test
    void aDeviceWithOtherProductsSaysSo() {
        try (var other = Devices.open(settings().withGemm(DeviceSettings.Gemm.KERNELS))) {
            Tensor half = other.memory().tensor("half", DType.BF16, 8, 8);

            assertThat(other.kernels().joinsProducts()).isFalse();
            assertThat(kernels.joinsProducts()).isTrue();
            assertThatThrownBy(
                            () ->
                                    other.kernels()
                                            .gemmThen(
                                                    half,
                                                    true,
                                                    half,
                                                    new Epilogue.Rounding(),
                                                    half))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("expected a GPU with cublasLt");
        }
    }

    private static DeviceSettings settings() {
        return EmulatedGpus.withCublas().findFirst().orElseThrow();
    }
}
