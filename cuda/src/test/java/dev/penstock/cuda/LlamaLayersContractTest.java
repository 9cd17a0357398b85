package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** What Llama and its family have beside attention, and the other form of GELU. */
@ParameterizedClass
@MethodSource("devices")
class LlamaLayersContractTest extends KernelContract {
    /** Heads in a row, and columns of each. */
    private static final int[][] HEADS = {{1, 1}, {1, 7}, {1, 33}, {1, 100}, {3, 5}, {2, 16}};

    private static final int ROWS = 6;
    private static final TokenBlocks BLOCKS = new TokenBlocks(2, 3, 1, 2);

    /** Large, so that the gradient of a head of one column is not all cancellation. */
    private static final double EPSILON = 0.1;

    LlamaLayersContractTest(DeviceSettings settings) {
        super(settings);
    }

    @Test
    void layerNormTakesItsEpsilon() {
        Tensor x = normals(ROWS, 20);
        Tensor gain = normals(1, 20);
        Tensor y = zeros(ROWS, 20);
        Tensor rstd = zeros(1, ROWS);

        kernels.layerNorm(x, gain, zeros(1, 20), y, zeros(1, ROWS), rstd, 0.5);

        for (int i = 0; i < ROWS; i++) {
            double truth = 1 / Math.sqrt(Truth.variance(values(x)[i]) + 0.5);
            assertThat(values(rstd)[0][i]).isCloseTo(truth, within(1e-5));
        }
    }

    @Test
    void rmsNormMeetsItsFormula() {
        for (int[] heads : HEADS) {
            int width = heads[0] * heads[1];
            Tensor x = normalsWithGaps(ROWS, width);
            Tensor gain = normals(1, heads[1]);
            Tensor y = normalsWithGaps(ROWS, width);
            Tensor r = zeros(1, ROWS * heads[0]);

            kernels.rmsNorm(x, gain, y, r, EPSILON);

            assertClose("y", y, Truth.rmsNorm(values(x), values(gain)[0], EPSILON), 2e-6);
            double last = values(y)[ROWS - 1][width - 1];
            double h = values(x)[ROWS - 1][width - 1] * values(gain)[0][heads[1] - 1];
            assertClose("r", r.columns(ROWS * heads[0] - 1, 1), new double[][] {{last / h}}, 1e-5);
        }
    }

    @Test
    void rmsNormGradientsMeetFiniteDifferences() {
        for (int[] heads : HEADS) {
            int width = heads[0] * heads[1];
            Tensor x = normalsWithGaps(ROWS, width);
            Tensor gain = normals(1, heads[1]);
            Tensor r = zeros(1, ROWS * heads[0]);
            kernels.rmsNorm(x, gain, zeros(ROWS, width), r, EPSILON);
            Tensor dy = normalsWithGaps(ROWS, width);
            Tensor dx = normals(ROWS, width);
            Tensor dGain = normals(1, heads[1]);
            double[][] in = values(x);
            double[][] weights = values(dy);
            double[] g = values(gain)[0];
            double[][] inputTruth =
                    gradient(values(x), v -> inner(Truth.rmsNorm(v, g, EPSILON), weights));
            double[][] sumTruth = plus(values(dx), inputTruth);
            double[][] gainTruth =
                    plus(
                            values(dGain),
                            gradient(
                                    values(gain),
                                    v -> inner(Truth.rmsNorm(in, v[0], EPSILON), weights)));

            kernels.rmsNormBackwardWeight(dy, x, r, dGain, BLOCKS);
            kernels.rmsNormBackwardInput(dy, x, gain, r, dx, true);
            kernels.rmsNormBackwardInput(dy, x, gain, r, dy, false);

            assertClose("dGain", dGain, gainTruth, 2e-5);
            assertClose("dx, added", dx, sumTruth, 2e-5);
            assertClose("dx, in place of dy", dy, inputTruth, 2e-5);
        }
    }

    /** As Qwen 3 norms the heads of queries and of keys, each inside a row of all three. */
    @Test
    void rmsNormOfSomeColumnsLeavesTheOthersAlone() {
        Tensor from = normals(ROWS, 40);
        Tensor to = normals(ROWS, 40);
        double[][] before = values(to);
        Tensor gain = normals(1, 8);

        kernels.rmsNorm(from.columns(8, 24), gain, to.columns(8, 24), zeros(1, 3 * ROWS), EPSILON);

        double[][] truth = Truth.rmsNorm(values(from), values(gain)[0], EPSILON);
        for (int i = 0; i < ROWS; i++) {
            for (int j = 0; j < 40; j++) {
                if (j < 8 || j >= 32) {
                    truth[i][j] = before[i][j];
                }
            }
        }
        assertClose("y", to, truth, 2e-6);
    }

    @Test
    void rotationTurnsPairsOfHalvesByTheirAngles() {
        for (int size : new int[] {2, 6, 16, 34, 64}) {
            Tensor turns = turns(4, size);
            Tensor x = normalsWithGaps(8, 3 * size);
            double[][] truth = rotated(values(x), values(turns));

            kernels.rotate(x, turns, false);

            assertClose("rotated", x, truth, 1e-6);
        }
    }

    @Test
    void rotationBackIsTheGradientAndUndoesIt() {
        int size = 10;
        Tensor turns = turns(9, size).rows(5, 4); // a slice from position 5 on
        Tensor x = normals(8, 2 * size);
        Tensor dy = normals(8, 2 * size);
        double[][] before = values(x);
        double[][] weights = values(dy);
        double[][] angles = values(turns);

        kernels.rotate(x, turns, false);
        kernels.rotate(x, turns, true);
        kernels.rotate(dy, turns, true);

        assertClose("turned and turned back", x, before, 1e-6);
        double[][] truth = gradient(before, v -> inner(rotated(v, angles), weights));
        assertClose("gradient", dy, truth, 1e-6);
    }

    /** Cosines, beside them sines. */
    private Tensor turns(int positions, int size) {
        Tensor turns = zeros(positions, size);
        for (int p = 0; p < positions; p++) {
            for (int j = 0; j < size / 2; j++) {
                double angle = p * Math.pow(10_000, -2.0 * j / size);
                HostMatrix.of(turns).set(p, j, (float) Math.cos(angle));
                HostMatrix.of(turns).set(p, size / 2 + j, (float) Math.sin(angle));
            }
        }
        return turns;
    }

    private static double[][] rotated(double[][] x, double[][] turns) {
        int half = turns[0].length / 2;
        double[][] y = new double[x.length][x[0].length];
        for (int i = 0; i < x.length; i++) {
            double[] turn = turns[i % turns.length];
            for (int j = 0; j < x[i].length; j++) {
                int pair = j % half;
                boolean isFirst = j / half % 2 == 0;
                double other = isFirst ? -x[i][j + half] : x[i][j - half];
                y[i][j] = x[i][j] * turn[pair] + other * turn[half + pair];
            }
        }
        return y;
    }

    @Test
    void swiGluMeetsItsFormulaAndItsGradientFiniteDifferences() {
        for (int width : new int[] {1, 7, 16, 33, 100}) {
            Tensor gated = normalsWithGaps(ROWS, 2 * width);
            HostMatrix.of(gated).set(0, 0, 30);
            HostMatrix.of(gated).set(1, 0, -30);
            Tensor z = normalsWithGaps(ROWS, width);
            Tensor dz = normalsWithGaps(ROWS, width);
            Tensor dGated = normalsWithGaps(ROWS, 2 * width);
            double[][] weights = values(dz);
            double[][] in = values(gated);

            kernels.swiGlu(gated, z);
            kernels.swiGluBackward(gated, dz, dGated);
            kernels.swiGluBackward(gated, dz, gated);

            assertClose("z", z, Truth.swiGlu(in), 1e-6);
            double[][] truth = gradient(in, v -> inner(Truth.swiGlu(v), weights));
            assertClose("dGated", dGated, truth, 1e-5);
            assertClose("dGated in place", gated, values(dGated), 0);
        }
    }

    @Test
    void swiGluOfHugeNumbersStaysFinite() {
        Tensor gated = normals(1, 40);
        for (int j = 0; j < 20; j++) {
            HostMatrix.of(gated).set(0, j, j % 2 == 0 ? 1e4f : -1e4f);
        }
        Tensor z = zeros(1, 20);

        kernels.swiGlu(gated, z);
        kernels.swiGluBackward(gated, z, gated);

        assertThat(kernels.allFinite(z)).isTrue();
        assertThat(kernels.allFinite(gated)).isTrue();
        assertThat(values(z)[0][1]).isCloseTo(0, within(1e-30));
    }

    @Test
    void exactGeluMeetsItsFormulaAndItsGradientFiniteDifferences() {
        for (int width : new int[] {1, 7, 16, 33, 100}) {
            Tensor pre = normals(9, width);
            HostMatrix.of(pre).set(0, 0, 12f);
            HostMatrix.of(pre).set(1, 0, -12f);
            HostMatrix.of(pre).set(2, 0, -4f);
            HostMatrix.of(pre).set(3, 0, 3.5f);
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

            kernels.biasGelu(pre, bias, y, Gelu.EXACT);
            kernels.geluBackward(pre, dy, Gelu.EXACT);

            assertClose("pre", pre, shifted, 1e-6);
            double[][] before = values(pre);
            double[][] truth = Truth.exactGelu(before);
            assertClose("gelu", y, truth, 1e-6);
            for (int i = 4; i < 9; i++) { // small numbers, where the largest hides nothing
                assertClose("gelu of small", y.rows(i, 1), new double[][] {truth[i]}, 1e-6);
            }
            double[][] up = Truth.exactGelu(Truth.map(before, v -> v + 1e-5));
            double[][] down = Truth.exactGelu(Truth.map(before, v -> v - 1e-5));
            for (int i = 0; i < 9; i++) {
                for (int j = 0; j < width; j++) {
                    weights[i][j] *= (up[i][j] - down[i][j]) / 2e-5;
                }
            }
            assertClose("gelu'", dy, weights, 1e-5);
        }
    }

    @Test
    void aNaNStaysVisible() {
        Tensor x = normals(4, 40);
        HostMatrix.of(x).set(2, 7, Float.NaN);
        Tensor y = zeros(4, 40);

        kernels.rmsNorm(x, normals(1, 40), y, zeros(1, 4), EPSILON);
        assertThat(kernels.allFinite(y)).isFalse();
        assertThat(kernels.allFinite(y.rows(0, 2))).isTrue();
        kernels.zero(y);
        kernels.swiGlu(x, y.columns(0, 20));
        assertThat(kernels.allFinite(y.columns(0, 20))).isFalse();
        kernels.zero(y);
        kernels.biasGelu(x, zeros(1, 40), y, Gelu.EXACT);
        assertThat(kernels.allFinite(y)).isFalse();
        kernels.rotate(x, turns(4, 20), false);
        assertThat(kernels.allFinite(x)).isFalse();
    }

    @Test
    void tensorsThatDoNotFitAreRefused() {
        assertThatThrownBy(
                        () ->
                                kernels.rmsNorm(
                                        zeros(4, 20), zeros(1, 8), zeros(4, 20), zeros(1, 4), 1))
                .hasMessageStartingWith(
                        "rmsNorm: expected x with whole heads of 8 columns, got F32 [4, 20]");
        assertThatThrownBy(
                        () ->
                                kernels.rmsNorm(
                                        zeros(4, 16), zeros(1, 8), zeros(4, 16), zeros(1, 4), 1))
                .hasMessageStartingWith("rmsNorm: expected r F32 [1, 8], got F32 [1, 4]");
        assertThatThrownBy(() -> kernels.rotate(zeros(4, 20), zeros(2, 8), false))
                .hasMessageStartingWith(
                        "rotate: expected x with whole heads of 8 columns, got F32 [4, 20]");
        assertThatThrownBy(() -> kernels.rotate(zeros(5, 16), zeros(2, 8), false))
                .hasMessageStartingWith(
                        "rotate: expected rows that 2 positions divide, got F32 [5, 16]");
        assertThatThrownBy(() -> kernels.swiGlu(zeros(5, 16), zeros(5, 16)))
                .hasMessageStartingWith("swiGlu: expected gated F32 [5, 32], got F32 [5, 16]");
    }
}
