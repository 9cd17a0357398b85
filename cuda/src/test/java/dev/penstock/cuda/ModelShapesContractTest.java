package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The kernels at the shapes of models that people train: heads of 64, 80 and 128 columns over many
 * tokens, vocabularies of GPT-2 and Llama 3, more rows than a grid of blocks has, sums of more than
 * 128 blocks. Truth is in double precision, at sampled rows where the whole would take long.
 */
@ParameterizedClass
@MethodSource("oneOfEachKind")
class ModelShapesContractTest extends KernelContract {
    private static final int GPT2 = 50_257;
    private static final int LLAMA3 = 128_256;

    /** Emulated threads are slow: a real GPU takes the whole. */
    private static final int TOKENS = EmulatedGpus.areWhole() ? 1_024 : 160;

    /** More than the y dimension of a grid of blocks. */
    private static final int MANY_ROWS = 70_000;

    /** One order of emulated threads is enough here: smaller shapes are tried in all. */
    static Stream<DeviceSettings> oneOfEachKind() {
        return withoutOthers(EmulatedGpus.devices().limit(1));
    }

    ModelShapesContractTest(DeviceSettings settings) {
        super(settings);
    }

    @Test
    void attentionAndItsGradientsMeetTheirFormulasOverManyTokens() {
        for (int headWidth : new int[] {64, 80, 128}) {
            Tensor qkv = normals(TOKENS, 3 * headWidth);
            Tensor y = zeros(TOKENS, headWidth);
            Tensor logSumExp = zeros(TOKENS, 1);
            Tensor dy = normals(TOKENS, headWidth);
            Tensor dQkv = zeros(TOKENS, 3 * headWidth);
            TokenBlocks whole = new TokenBlocks(1, TOKENS, 0, 128);
            AttentionShape shape = AttentionShape.dense(1, headWidth);

            kernels.attention(DType.F32, qkv, y, logSumExp, shape, TOKENS, whole);
            kernels.attentionBackward(DType.F32, qkv, y, logSumExp, dy, dQkv, shape, TOKENS, whole);

            Truth.HeadGradients truth = Truth.attentionOfOneHead(values(qkv), values(dy));
            assertClose("y of width " + headWidth, y, truth.y(), 1e-5);
            assertClose("dQkv of width " + headWidth, dQkv, truth.dQkv(), 2e-5);

            kernels.zero(dQkv);
            kernels.attention(DType.BF16, qkv, y, logSumExp, shape, TOKENS, whole);
            kernels.attentionBackward(
                    DType.BF16, qkv, y, logSumExp, dy, dQkv, shape, TOKENS, whole);

            assertClose("y in bf16, width " + headWidth, y, truth.y(), 1e-2);
            assertClose("dQkv in bf16, width " + headWidth, dQkv, truth.dQkv(), 1e-2);
        }
    }

    @Test
    void lossesOfLargeVocabulariesAndTheirGradientsAreRight() {
        int rows = 4;
        for (int vocabulary : new int[] {GPT2, LLAMA3}) {
            Tensor logits = normalsWithGaps(rows, vocabulary);
            Tensor targets = indices(rows, vocabulary);
            HostMatrix.of(targets).setInt(0, 0, vocabulary - 1);
            Tensor parts = zeros(1, 3 * rows);
            Tensor losses = zeros(1, rows);
            double[][] before = values(logits);
            TokenRange range = new TokenRange(0, vocabulary);

            kernels.softmaxPart(logits, targets, range, parts, true);
            kernels.crossEntropy(parts, 0, logits, targets, range, losses, 1f / rows);

            int[] at = integers(targets);
            double[] truth = Truth.crossEntropy(before, at);
            double[][] slope = new double[rows][vocabulary];
            for (int i = 0; i < rows; i++) {
                for (int j = 0; j < vocabulary; j++) {
                    double probability = Math.exp(before[i][j] - before[i][at[i]] - truth[i]);
                    slope[i][j] = (probability - (j == at[i] ? 1 : 0)) / rows;
                }
            }
            assertClose("losses", losses, new double[][] {truth}, 2e-6);
            assertClose("dLogits", logits, slope, 1e-5);
        }
    }

    /** Frequent tokens and rare ones, more positions than a block of a GPU looks at together. */
    @Test
    void gradientsOfLargeTablesAreSumsOfTheirTokensRows() {
        for (int width : new int[] {8, 6}) {
            TokenBlocks blocks = new TokenBlocks(3, 1_500, 500, 128);
            Tensor tokens = indices(blocks.rows(), GPT2);
            for (int i = 0; i < blocks.rows(); i++) {
                if (i % 3 != 0) {
                    HostMatrix.of(tokens).setInt(0, i, i % 2 == 0 ? GPT2 - 1 : 20 + i % 40);
                }
            }
            TokenRange upper = new TokenRange(30, GPT2);
            Tensor dy = normals(blocks.rows(), width);
            Tensor dTable = normals(GPT2 - 30, width);
            double[][] truth = values(dTable);
            double[][] gradients = values(dy);

            kernels.embeddingBackward(dy, tokens, upper, dTable, blocks);

            int[] at = integers(tokens);
            for (int i = 0; i < at.length; i++) {
                for (int j = 0; j < width && at[i] >= 30; j++) {
                    truth[at[i] - 30][j] += gradients[i][j];
                }
            }
            assertClose("dTable", dTable, truth, 1e-5);
        }
    }

    @Test
    void squaredNormsOfManyTensorsAreThoseOfEach() {
        List<Tensor> tensors = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            tensors.add(normals(1, i == 7 ? 70_001 : 1 + 900 * i));
        }

        double[] norms = kernels.squaredNorms(tensors);

        for (int i = 0; i < norms.length; i++) {
            double truth = inner(values(tensors.get(i)), values(tensors.get(i)));
            assertThat(norms[i]).isCloseTo(truth, within(1e-12 * truth));
            assertThat(kernels.squaredNorm(tensors.get(i))).isEqualTo(norms[i]);
        }
    }

    @Test
    void opsOnMoreRowsThanAGridHasReachAllOfThem() {
        int width = 8;
        Tensor x = normals(MANY_ROWS, width);
        Tensor bias = normals(1, width);
        Tensor gain = normals(1, width);
        Tensor y = zeros(MANY_ROWS, width);
        Tensor mean = zeros(1, MANY_ROWS);
        Tensor rstd = zeros(1, MANY_ROWS);
        double[][] in = values(x);
        double[] g = values(gain)[0];
        double[] b = values(bias)[0];

        kernels.layerNorm(x, gain, bias, y, mean, rstd, 1e-5);
        assertClose("layerNorm", y, Truth.layerNorm(in, g, b), 1e-5);

        Tensor withGaps = normalsWithGaps(MANY_ROWS, width);
        double[][] before = values(withGaps);
        kernels.addBias(withGaps, bias);
        assertClose("addBias", withGaps, eachPlus(before, b));

        HostMatrix.of(withGaps).set(MANY_ROWS - 1, width - 1, Float.NaN);
        assertThat(kernels.allFinite(withGaps)).isFalse();
    }

    @Test
    void sumsOfManyBlocksAreRight() {
        int width = 24;
        TokenBlocks blocks = new TokenBlocks(4, 301, 0, 8); // 152 of them
        Tensor x = normals(blocks.rows(), width);
        Tensor gain = normals(1, width);
        Tensor y = zeros(blocks.rows(), width);
        Tensor mean = zeros(1, blocks.rows());
        Tensor rstd = zeros(1, blocks.rows());
        Tensor dy = normals(blocks.rows(), width);
        Tensor dBias = zeros(1, width);
        Tensor dGain = zeros(1, width);
        kernels.layerNorm(x, gain, zeros(1, width), y, mean, rstd, 1e-5);

        kernels.biasGradient(dy, dBias, blocks);
        double[][] sums = {columnSums(values(dy))};
        assertClose("biasGradient", dBias, sums, 1e-5);

        kernels.zero(dBias);
        kernels.layerNormBackwardWeight(dy, x, mean, rstd, dGain, dBias, blocks);
        double[] ones = new double[width];
        Arrays.fill(ones, 1);
        double[][] h = Truth.layerNorm(values(x), ones, new double[width]);
        double[][] gradients = values(dy);
        IntStream.range(0, h.length)
                .forEach(i -> Arrays.setAll(h[i], j -> h[i][j] * gradients[i][j]));
        assertClose("dBias", dBias, sums, 1e-5);
        assertClose("dGain", dGain, new double[][] {columnSums(h)}, 1e-5);
    }

    private static double[][] eachPlus(double[][] rows, double[] bias) {
        return Arrays.stream(rows)
                .map(row -> IntStream.range(0, row.length).mapToDouble(j -> row[j] + bias[j]))
                .map(DoubleStream::toArray)
                .toArray(double[][]::new);
    }

    private static double[] columnSums(double[][] rows) {
        double[] sums = new double[rows[0].length];
        for (double[] row : rows) {
            for (int j = 0; j < row.length; j++) {
                sums[j] += row[j];
            }
        }
        return sums;
    }
}
