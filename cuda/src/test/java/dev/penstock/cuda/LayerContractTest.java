package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
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

            kernels.layerNorm(x, gain, bias, y, mean, rstd);

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
            kernels.layerNorm(x, gain, bias, zeros(6, width), mean, rstd);
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

            kernels.biasGelu(pre, bias, y);
            kernels.geluBackward(pre, dy);

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
            double[] truth = Truth.crossEntropy(in, integers(targets));
            double[][] slope =
                    gradient(
                            in,
                            v -> {
                                double sum = 0;
                                for (double loss : Truth.crossEntropy(v, integers(targets))) {
                                    sum += loss;
                                }
                                return sum / 6;
                            });

            kernels.crossEntropy(logits, targets, losses, 1f / 6);

            assertClose("losses", losses, new double[][] {truth}, 2e-6);
            assertClose("dlogits", logits, slope, 1e-5);
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

        kernels.crossEntropy(logits, targets, losses, 1);
        kernels.crossEntropy(copy, targets, lossesOnly, 0);

        assertClose("losses", lossesOnly, values(losses), 0);
    }

    @Test
    void hugeLogitsDoNotOverflow() {
        Tensor logits = normals(2, 40);
        HostMatrix.of(logits).set(0, 3, 1e30f);
        HostMatrix.of(logits).set(1, 7, -1e30f);
        Tensor targets = indices(2, 1);
        HostMatrix.of(targets).setInt(0, 0, 3);
        Tensor losses = zeros(1, 2);

        kernels.crossEntropy(logits, targets, losses, 1);

        assertThat(kernels.allFinite(logits)).isTrue();
        assertThat(values(losses)[0][0]).isEqualTo(0);
    }

    @Test
    void embeddingsAddTokenAndPosition() {
        for (int width : WIDTHS) {
            TokenBlocks blocks = new TokenBlocks(2, 5, 3, 4);
            Tensor tokens = indices(10, 9);
            Tensor table = normals(9, width);
            Tensor positions = normals(8, width);
            Tensor y = zeros(10, width);
            Tensor dTable = normals(9, width);
            Tensor dPositions = normals(8, width);
            double[][] truth = new double[10][width];
            double[][] dTableTruth = values(dTable);
            double[][] dPositionsTruth = values(dPositions);
            for (int row = 0; row < 10; row++) {
                for (int j = 0; j < width; j++) {
                    int token = integers(tokens)[row];
                    int position = 3 + row % 5;
                    truth[row][j] = values(table)[token][j] + values(positions)[position][j];
                    dTableTruth[token][j] += truth[row][j];
                    dPositionsTruth[position][j] += truth[row][j];
                }
            }

            kernels.embedding(tokens, table, positions, y, blocks);
            kernels.embeddingBackward(y, tokens, dTable, dPositions, blocks);

            assertClose("embedding", y, truth);
            assertClose("dTable", dTable, dTableTruth);
            assertClose("dPositions", dPositions, dPositionsTruth);
        }
    }

    @Test
    void tokensAndTargetsOutOfRangeAreRefused() {
        TokenBlocks blocks = new TokenBlocks(1, 4, 0, 4);
        Tensor tokens = indices(4, 3);
        HostMatrix.of(tokens).setInt(0, 2, 9);

        assertThatThrownBy(
                        () ->
                                kernels.embedding(
                                        tokens, zeros(9, 2), zeros(4, 2), zeros(4, 2), blocks))
                .hasMessage("embedding: expected tokens of 0 to 8, got 9 at row 2");
        assertThatThrownBy(() -> kernels.crossEntropy(zeros(4, 9), tokens, zeros(1, 4), 1))
                .hasMessage("crossEntropy: expected targets of 0 to 8, got 9 at row 2");
        assertThatThrownBy(
                        () ->
                                kernels.embedding(
                                        tokens, zeros(9, 2), zeros(3, 2), zeros(4, 2), blocks))
                .hasMessage("embedding: expected at most 3 positions, got 4");
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
