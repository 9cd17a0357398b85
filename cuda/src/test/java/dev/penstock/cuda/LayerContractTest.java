package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

@ParameterizedClass
@MethodSource("devices")
class LayerContractTest extends KernelContract {
    private static final int[] WIDTHS = {1, 7, 16, 33, 100};

    LayerContractTest(DeviceSettings settings) {
        super(settings);
    }

    @Test
    void layerNormMeetsItsFormula() {
        for (int width : WIDTHS) {
            Tensor x = normalsWithGaps(5, width);
            Tensor gain = normals(1, width);
            Tensor bias = normals(1, width);
            Tensor y = zeros(5, width);
            Tensor mean = zeros(1, 5);
            Tensor rstd = zeros(1, 5);

            kernels.layerNorm(x, gain, bias, y, mean, rstd, 1e-5);

            double[][] in = values(x);
            assertClose("y", y, Truth.layerNorm(in, values(gain)[0], values(bias)[0]), 2e-5);
            for (int i = 0; i < 5; i++) {
                assertClose("mean", mean.columns(i, 1), new double[][] {{Truth.mean(in[i])}}, 1e-4);
            }
        }
    }

    @Test
    void layerNormGradientsMeetFiniteDifferences() {
        TokenBlocks blocks = new TokenBlocks(2, 3, 1, 2);
        for (int width : new int[] {7, 16, 33}) {
            Tensor x = normals(6, width);
            Tensor gain = normals(1, width);
            Tensor bias = normals(1, width);
            Tensor mean = zeros(1, 6);
            Tensor rstd = zeros(1, 6);
            kernels.layerNorm(x, gain, bias, zeros(6, width), mean, rstd, 1e-5);
            Tensor dy = normals(6, width);
            Tensor dx = normals(6, width);
            Tensor dGain = normals(1, width);
            Tensor dBias = normals(1, width);
            double[][] in = values(x);
            double[][] weights = values(dy);
            double[] g = values(gain)[0];
            double[] b = values(bias)[0];
            double[][] dxTruth =
                    plus(values(dx), gradient(in, v -> inner(Truth.layerNorm(v, g, b), weights)));
            double[][] dGainTruth =
                    plus(
                            values(dGain),
                            gradient(
                                    values(gain),
                                    v -> inner(Truth.layerNorm(in, v[0], b), weights)));
            double[][] dBiasTruth =
                    plus(
                            values(dBias),
                            gradient(
                                    values(bias),
                                    v -> inner(Truth.layerNorm(in, g, v[0]), weights)));

            kernels.layerNormBackwardInput(dy, x, gain, mean, rstd, dx);
            kernels.layerNormBackwardWeight(dy, x, mean, rstd, dGain, dBias, blocks);

            assertClose("dx", dx, dxTruth, 2e-5);
            assertClose("dGain", dGain, dGainTruth, 2e-5);
            assertClose("dBias", dBias, dBiasTruth, 2e-5);
        }
    }

    /**
     * Many blocks of rows, with fewer and more rows than a GPU takes at a time, and rows of the
     * lengths at which it turns to another kernel. One pass or two, the bits are the same.
     */
    @Test
    void gradientsOfALayerNormInOnePassAreThoseOfTwo() {
        for (int width : new int[] {33, 768, 1000, 1030}) {
            assertOnePassIsTwo(new TokenBlocks(16, 13, 2, 3), width);
        }
        for (int width : new int[] {40, 800}) {
            assertOnePassIsTwo(new TokenBlocks(64, 30, 5, 32), width);
        }
    }

    private void assertOnePassIsTwo(TokenBlocks blocks, int width) {
        int rows = blocks.rows();
        Tensor x = normalsWithGaps(rows, width);
        Tensor gain = normals(1, width);
        Tensor mean = zeros(1, rows);
        Tensor rstd = zeros(1, rows);
        kernels.layerNorm(x, gain, zeros(1, width), zeros(rows, width), mean, rstd, 1e-5);
        Tensor dy = normalsWithGaps(rows, width);
        Tensor dx = normalsWithGaps(rows, width);
        Tensor dGain = normals(1, width);
        Tensor dBias = normals(1, width);
        Tensor dxOfTwo = copied(dx);
        Tensor dGainOfTwo = copied(dGain);
        Tensor dBiasOfTwo = copied(dBias);

        kernels.layerNormBackward(dy, x, gain, mean, rstd, dx, dGain, dBias, blocks);
        kernels.layerNormBackwardInput(dy, x, gain, mean, rstd, dxOfTwo);
        kernels.layerNormBackwardWeight(dy, x, mean, rstd, dGainOfTwo, dBiasOfTwo, blocks);

        assertClose("dx of " + width, dx, values(dxOfTwo), 0);
        assertClose("dGain of " + width, dGain, values(dGainOfTwo), 0);
        assertClose("dBias of " + width, dBias, values(dBiasOfTwo), 0);
    }

    @Test
    void geluMeetsItsFormulaAndItsGradientFiniteDifferences() {
        for (int width : WIDTHS) {
            Tensor pre = normals(9, width);
            HostMatrix.of(pre).set(0, 0, 30f);
            HostMatrix.of(pre).set(1, 0, -30f);
            Tensor bias = normals(1, width);
            double[][] shifted = values(pre);
            for (double[] row : shifted) {
                for (int j = 0; j < width; j++) {
                    row[j] += values(bias)[0][j];
                }
            }
            Tensor y = zeros(9, width);
            Tensor dy = normals(9, width);
            double[][] weights = values(dy);

            kernels.biasGelu(pre, bias, y, Gelu.TANH);
            kernels.geluBackward(pre, dy, Gelu.TANH);

            assertClose("pre", pre, shifted, 1e-6);
            assertClose("gelu", y, Truth.gelu(shifted), 1e-6);
            double[][] slope = gradient(values(pre), v -> inner(Truth.gelu(v), weights));
            assertClose("gelu'", dy, slope, 1e-5);
        }
    }

    @Test
    void lossesAndTheirGradientsAreRight() {
        for (int vocabulary : new int[] {2, 16, 57, 300}) {
            Tensor logits = normalsWithGaps(6, vocabulary);
            Tensor targets = indices(6, vocabulary);
            Tensor losses = zeros(1, 6);
            double[][] in = values(logits);
            double[][] slope = slope(in, integers(targets));

            crossEntropy(List.of(logits), targets, vocabulary, losses, 1f / 6);

            double[] truth = Truth.crossEntropy(in, integers(targets));
            assertClose("losses", losses, new double[][] {truth}, 2e-6);
            assertClose("dlogits", logits, slope, 1e-5);
        }
    }

    /** The gradient of the mean loss by finite differences. */
    private static double[][] slope(double[][] logits, int[] targets) {
        return gradient(
                logits, v -> Arrays.stream(Truth.crossEntropy(v, targets)).sum() / v.length);
    }

    /** Every shard takes the same numbers of all shards. */
    private void crossEntropy(
            List<Tensor> shards, Tensor targets, int vocabulary, Tensor losses, float scale) {
        Tensor parts = zeros(shards.size(), 3 * targets.columns());
        List<TokenRange> ranges = new ArrayList<>();
        int first = 0;
        for (int s = 0; s < shards.size(); s++) {
            ranges.add(new TokenRange(first, vocabulary));
            first += shards.get(s).columns();
            kernels.softmaxPart(
                    shards.get(s), targets, ranges.get(s), parts.rows(s, 1), scale != 0);
        }
        Tensor before = zeros(1, targets.columns());
        for (int s = 0; s < shards.size(); s++) {
            kernels.copy(losses, before);
            kernels.crossEntropy(parts, s, shards.get(s), targets, ranges.get(s), losses, scale);
            if (s > 0) {
                assertThat(values(losses)).isDeepEqualTo(values(before));
            }
        }
    }

    @Test
    void shardsOfTheVocabularyGetTheLossesAndTheirPartOfTheGradient() {
        for (List<Integer> cut : List.of(List.of(1, 1), List.of(40, 17), List.of(3, 16, 100))) {
            int vocabulary = cut.stream().mapToInt(Integer::intValue).sum();
            Tensor whole = normals(6, vocabulary);
            HostMatrix.of(whole).set(2, 0, 25f); // one shard has nearly all of it
            HostMatrix.of(whole).set(3, vocabulary - 1, 25f);
            Tensor targets = indices(6, vocabulary);
            HostMatrix.of(targets).setInt(0, 0, 0);
            HostMatrix.of(targets).setInt(0, 1, vocabulary - 1);
            Tensor losses = zeros(1, 6);
            double[][] in = values(whole);
            double[][] slope = slope(in, integers(targets));
            List<Tensor> shards = new ArrayList<>();
            int first = 0;
            for (int columns : cut) {
                shards.add(zeros(6, columns));
                kernels.copy(whole.columns(first, columns), shards.getLast());
                first += columns;
            }

            crossEntropy(shards, targets, vocabulary, losses, 1f / 6);

            double[] truth = Truth.crossEntropy(in, integers(targets));
            assertClose("losses", losses, new double[][] {truth}, 2e-6);
            first = 0;
            for (Tensor shard : shards) {
                kernels.copy(shard, whole.columns(first, shard.columns()));
                first += shard.columns();
            }
            assertClose("dlogits", whole, slope, 1e-5);
        }
    }

    @Test
    void theLossIsTheSameWithoutItsGradient() {
        Tensor logits = normals(8, 100);
        Tensor copy = zeros(8, 100);
        Tensor targets = indices(8, 100);
        Tensor losses = zeros(1, 8);
        Tensor lossesOnly = zeros(1, 8);
        kernels.copy(logits, copy);

        crossEntropy(List.of(logits), targets, 100, losses, 1);
        crossEntropy(List.of(copy), targets, 100, lossesOnly, 0);

        assertClose("losses", lossesOnly, values(losses), 0);
    }

    @Test
    void hugeLogitsDoNotOverflow() {
        Tensor logits = normals(2, 40);
        HostMatrix.of(logits).set(0, 3, 1e30f);
        HostMatrix.of(logits).set(1, 7, -1e30f);
        Tensor others = normals(2, 5);
        HostMatrix.of(others).set(0, 3, -1e30f);
        Tensor targets = indices(2, 1);
        HostMatrix.of(targets).setInt(0, 0, 3);
        Tensor losses = zeros(1, 2);

        crossEntropy(List.of(logits, others), targets, 45, losses, 1);

        assertThat(kernels.allFinite(logits)).isTrue();
        assertThat(kernels.allFinite(others)).isTrue();
        assertThat(values(losses)[0][0]).isEqualTo(0);
    }

    @Test
    void notANumberInOneShardShowsInTheLossesOfAll() {
        Tensor logits = normals(2, 40);
        Tensor others = normals(2, 5);
        HostMatrix.of(others).set(1, 3, Float.NaN);
        Tensor losses = zeros(1, 2);
        Tensor parts = zeros(2, 6);
        Tensor targets = indices(2, 40);

        kernels.softmaxPart(logits, targets, new TokenRange(0, 45), parts.rows(0, 1), true);
        kernels.softmaxPart(others, targets, new TokenRange(40, 45), parts.rows(1, 1), true);
        kernels.crossEntropy(parts, 0, logits, targets, new TokenRange(0, 45), losses, 1);

        assertThat(values(losses)[0][0]).isFinite();
        assertThat(values(losses)[0][1]).isNaN();
    }

    @Test
    void embeddingsLookUpTheRowsOfAShard() {
        TokenBlocks blocks = new TokenBlocks(2, 5, 3, 4);
        for (int width : WIDTHS) {
            for (TokenRange range : List.of(TokenRange.all(9), new TokenRange(4, 20))) {
                Tensor tokens = indices(10, range.vocabulary());
                HostMatrix.of(tokens).setInt(0, 3, range.first());
                HostMatrix.of(tokens).setInt(0, 7, range.first() + 8);
                Tensor table = normals(9, width);
                Tensor y = normals(10, width);
                Tensor dTable = normals(9, width);
                Tensor dy = normalsWithGaps(10, width);
                double[][] truth = new double[10][width];
                double[][] dTableTruth = values(dTable);
                for (int row = 0; row < 10; row++) {
                    int token = integers(tokens)[row] - range.first();
                    for (int j = 0; j < width && token >= 0 && token < 9; j++) {
                        truth[row][j] = values(table)[token][j];
                        dTableTruth[token][j] += values(dy)[row][j];
                    }
                }

                kernels.embedding(tokens, range, table, y);
                kernels.embeddingBackward(dy, tokens, range, dTable, blocks);

                assertClose("embedding", y, truth, 0);
                assertClose("dTable", dTable, dTableTruth);
            }
        }
    }

    @Test
    void tokensAndTargetsOutOfRangeAreRefused() {
        Tensor tokens = indices(4, 3);
        HostMatrix.of(tokens).setInt(0, 2, 9);

        assertThatThrownBy(
                        () ->
                                kernels.embedding(
                                        tokens, TokenRange.all(9), zeros(9, 2), zeros(4, 2)))
                .hasMessage("embedding: expected tokens of 0 to 8, got 9 at row 2");
        assertThatThrownBy(
                        () ->
                                kernels.softmaxPart(
                                        zeros(4, 3),
                                        tokens,
                                        new TokenRange(6, 9),
                                        zeros(1, 12),
                                        true))
                .hasMessage("softmaxPart: expected targets of 0 to 8, got 9 at row 2");
        assertThatThrownBy(
                        () ->
                                kernels.embedding(
                                        tokens, new TokenRange(8, 10), zeros(3, 2), zeros(4, 2)))
                .hasMessage(
                        "embedding: expected at most as many rows as there are tokens in"
                                + " TokenRange[first=8, vocabulary=10], got 3");
    }

    @Test
    void biasesAreAddedAndTheirGradientsSummed() {
        for (int width : WIDTHS) {
            TokenBlocks blocks = new TokenBlocks(2, 5, 3, 4);
            Tensor y = normalsWithGaps(10, width);
            Tensor bias = normals(1, width);
            Tensor residual = normalsWithGaps(10, width);
            double[][] truth = values(y);
            double[][] sums = values(bias);
            for (int i = 0; i < 10; i++) {
                for (int j = 0; j < width; j++) {
                    truth[i][j] += 2 * values(bias)[0][j] + values(residual)[i][j];
                    sums[0][j] += truth[i][j];
                }
            }

            kernels.addBias(y, bias);
            kernels.addBiasAndResidual(y, bias, residual);
            kernels.biasGradient(y, bias, blocks);

            assertClose("y", y, truth);
            assertClose("dBias", bias, sums);
        }
    }
}
