package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Retention in its three forms: a chunk of all tokens, of some, of one. */
@ParameterizedClass(allowZeroInvocations = true)
@MethodSource("cpus")
class RetentionContractTest extends KernelContract {
    private static final int SEQUENCES = 2;
    private static final int TOKENS = 20;

    private static final int[] HEAD_SIZES = {1, 7, 16, 33};

    /** Two heads: the default decay, and one that forgets nothing. */
    private static final RetentionShape SHAPE =
            new RetentionShape(4, 6, List.of(1 - 1 / 32.0, 1.0), true);

    RetentionContractTest(DeviceSettings settings) {
        super(settings);
    }

    /** GPUs do not have these ops: none on a real one. */
    static Stream<DeviceSettings> cpus() {
        return devices().filter(device -> device.kind() != Kind.CUDA);
    }

    /** What a run over slices leaves. */
    private record Result(Tensor y, Tensor dQkv) {}

    /** Runs forward and backward over slices of these lengths. */
    private Result run(Tensor qkv, double[][] dy, int grid, int... slices) {
        Result result =
                new Result(
                        zeros(SEQUENCES * TOKENS, SHAPE.valueColumns()),
                        zeros(qkv.rows(), SHAPE.columns()));
        int chunks = 0;
        int first = 0;
        for (int slice : slices) {
            chunks += new TokenBlocks(1, slice, first, grid).blocksPerSequence();
            first += slice;
        }
        Tensor states = zeros((chunks + 1) * SEQUENCES, SHAPE.stateColumns());
        int chunk = 0;
        first = 0;
        for (int slice : slices) {
            var blocks = new TokenBlocks(SEQUENCES, slice, first, grid);
            Tensor own = own(states, chunk, blocks);
            kernels.retentionStates(qkv, own, SHAPE, TOKENS, blocks);
            Tensor y = zeros(SEQUENCES * slice, SHAPE.valueColumns());
            kernels.retention(qkv, own, y, SHAPE, TOKENS, blocks);
            scatter(y, result.y, blocks);
            chunk += blocks.blocksPerSequence();
            first += slice;
        }
        kernels.zero(states.rows(chunk * SEQUENCES, SEQUENCES));
        for (int i = slices.length - 1; i >= 0; i--) {
            first -= slices[i];
            var blocks = new TokenBlocks(SEQUENCES, slices[i], first, grid);
            chunk -= blocks.blocksPerSequence();
            Tensor gradient = zeros(SEQUENCES * slices[i], SHAPE.valueColumns());
            for (int row = 0; row < gradient.rows(); row++) {
                for (int j = 0; j < gradient.columns(); j++) {
                    int from = row / slices[i] * TOKENS + first + row % slices[i];
                    HostMatrix.of(gradient).set(row, j, (float) dy[from][j]);
                }
            }
            Tensor own = own(states, chunk, blocks);
            kernels.retentionBackward(qkv, own, gradient, result.dQkv, SHAPE, TOKENS, blocks);
        }
        return result;
    }

    private static Tensor own(Tensor states, int chunk, TokenBlocks blocks) {
        return states.rows(
                chunk * SEQUENCES, (blocks.blocksPerSequence() + 1) * blocks.sequences());
    }

    private void scatter(Tensor unit, Tensor whole, TokenBlocks blocks) {
        for (int b = 0; b < SEQUENCES; b++) {
            kernels.copy(
                    unit.rows(b * blocks.tokens(), blocks.tokens()),
                    whole.rows(b * TOKENS + blocks.firstToken(), blocks.tokens()));
        }
    }

    @Test
    void allFormsMeetTheDefinition() {
        Tensor qkv = normalsWithGaps(SEQUENCES * TOKENS, SHAPE.columns());
        double[][] in = values(qkv);
        double[][] dy = values(normals(SEQUENCES * TOKENS, SHAPE.valueColumns()));
        double[][] truth = retention(in);
        double[][] gradient = gradient(values(qkv), v -> inner(retention(v), dy));

        for (int grid : new int[] {TOKENS, 8, 1}) {
            Result whole = run(qkv, dy, grid, TOKENS);

            assertClose("y on a grid of " + grid, whole.y, truth, 4e-6);
            assertClose("dQkv on a grid of " + grid, whole.dQkv, gradient, 1e-5);
        }
    }

    @Test
    void slicesOnTheGridHaveTheBitsOfTheWhole() {
        Tensor qkv = normals(SEQUENCES * TOKENS, SHAPE.columns());
        double[][] dy = values(normals(SEQUENCES * TOKENS, SHAPE.valueColumns()));
        Result whole = run(qkv, dy, 8, TOKENS);

        Result sliced = run(qkv, dy, 8, 8, 12);

        assertThat(values(sliced.y)).isDeepEqualTo(values(whole.y));
        assertThat(values(sliced.dQkv)).isDeepEqualTo(values(whole.dQkv));
    }

    @Test
    void slicesOffTheGridMeetTheWhole() {
        Tensor qkv = normals(SEQUENCES * TOKENS, SHAPE.columns());
        double[][] dy = values(normals(SEQUENCES * TOKENS, SHAPE.valueColumns()));
        Result whole = run(qkv, dy, 8, TOKENS);

        Result sliced = run(qkv, dy, 8, 7, 1, 12);

        assertClose("y", sliced.y, values(whole.y), 4e-6);
        assertClose("dQkv", sliced.dQkv, values(whole.dQkv), 4e-6);
    }

    /** Also of a slice whose rows are all there is, as a context part has them. */
    @Test
    void theGradientOfTheStateAloneIsThatOfTheWholeBackward() {
        for (int first : new int[] {0, 7}) {
            var blocks = new TokenBlocks(SEQUENCES, TOKENS, first, 8);
            int chunks = blocks.blocksPerSequence();
            Tensor qkv = normals(SEQUENCES * TOKENS, SHAPE.columns());
            Tensor dy = normals(SEQUENCES * TOKENS, SHAPE.valueColumns());
            Tensor states = normals((chunks + 1) * SEQUENCES, SHAPE.stateColumns());
            Tensor gradient = copied(states.rows(chunks * SEQUENCES, SEQUENCES));

            kernels.retentionStateGradient(qkv, gradient, dy, SHAPE, TOKENS, blocks);

            Tensor dQkv = zeros(qkv.rows(), qkv.columns());
            kernels.retentionBackward(qkv, states, dy, dQkv, SHAPE, TOKENS, blocks);
            assertClose("dR", gradient, values(states.rows(0, SEQUENCES)), 1e-6);
        }
    }

    /** The parallel form, position by position. */
    private static double[][] retention(double[][] qkv) {
        double[][] y = new double[qkv.length][SHAPE.valueColumns()];
        int n = SHAPE.keySize();
        int m = SHAPE.valueSize();
        for (int row = 0; row < qkv.length; row++) {
            int t = row % TOKENS;
            for (int head = 0; head < SHAPE.heads(); head++) {
                double decay = SHAPE.decays().get(head);
                double sum = 0;
                for (int back = 0; back <= t; back++) {
                    double[] other = qkv[row - back];
                    double weight = Math.pow(decay, back);
                    sum += weight;
                    double score = 0;
                    for (int r = 0; r < n; r++) {
                        score += qkv[row][head * n + r] * other[(SHAPE.heads() + head) * n + r];
                    }
                    for (int c = 0; c < m; c++) {
                        y[row][head * m + c] +=
                                weight * score * other[2 * SHAPE.heads() * n + head * m + c];
                    }
                }
                for (int c = 0; c < m; c++) {
                    y[row][head * m + c] /= Math.sqrt(sum) * Math.sqrt(n);
                }
            }
        }
        return y;
    }

    @Test
    void headsAreNormedAndGated() {
        for (int size : HEAD_SIZES) {
            Tensor x = normalsWithGaps(5, 3 * size);
            Tensor gate = normalsWithGaps(5, 3 * size);
            Tensor dGate = normalsWithGaps(5, 3 * size);
            Tensor y = normalsWithGaps(5, 3 * size);
            Tensor dy = normals(5, 3 * size);
            Tensor r = zeros(5, 3);
            double[][] in = values(x);
            double[][] open = values(gate);
            double[][] weights = values(dy);

            kernels.gatedHeadNorm(x, gate, y, r, 0.1);
            kernels.gatedHeadNormBackward(dy, x, gate, r, dy, dGate);

            assertClose("y", y, opened(headNorm(in, size), open), 4e-6);
            double[][] dx =
                    gradient(values(x), v -> inner(opened(headNorm(v, size), open), weights));
            assertClose("dx", dy, dx, 2e-5);
            double[][] dg =
                    gradient(values(gate), v -> inner(opened(headNorm(in, size), v), weights));
            assertClose("dGate", dGate, dg, 2e-5);
        }
    }

    @Test
    void headsWithoutGatesAreNormedAlone() {
        for (int size : HEAD_SIZES) {
            Tensor x = normalsWithGaps(5, 3 * size);
            Tensor y = normalsWithGaps(5, 3 * size);
            Tensor dy = normals(5, 3 * size);
            Tensor dx = normalsWithGaps(5, 3 * size);
            Tensor r = zeros(5, 3);
            double[][] weights = values(dy);

            kernels.gatedHeadNorm(x, null, y, r, 0.1);
            kernels.gatedHeadNormBackward(dy, x, null, r, dx, null);

            assertClose("y", y, headNorm(values(x), size), 4e-6);
            double[][] truth = gradient(values(x), v -> inner(headNorm(v, size), weights));
            assertClose("dx", dx, truth, 2e-5);
        }
    }

    private static double[][] opened(double[][] normed, double[][] gate) {
        double[][] y = new double[normed.length][normed[0].length];
        for (int i = 0; i < y.length; i++) {
            for (int j = 0; j < y[i].length; j++) {
                y[i][j] = normed[i][j] * gate[i][j] / (1 + Math.exp(-gate[i][j]));
            }
        }
        return y;
    }

    private static double[][] headNorm(double[][] x, int size) {
        double[][] y = new double[x.length][x[0].length];
        for (int i = 0; i < x.length; i++) {
            for (int j = 0; j < x[i].length; j++) {
                int first = j / size * size;
                double squares = 0;
                for (int c = first; c < first + size; c++) {
                    squares += x[i][c] * x[i][c];
                }
                y[i][j] = x[i][j] / Math.sqrt(squares / size + 0.1);
            }
        }
        return y;
    }

    @Test
    void geGluMeetsItsFormulaAndItsGradientFiniteDifferences() {
        for (int width : new int[] {1, 7, 16, 33}) {
            Tensor gated = normalsWithGaps(4, 2 * width);
            Tensor z = normalsWithGaps(4, width);
            Tensor dz = normalsWithGaps(4, width);
            Tensor dGated = normalsWithGaps(4, 2 * width);
            double[][] in = values(gated);
            double[][] weights = values(dz);

            kernels.geGlu(gated, z);
            kernels.geGluBackward(gated, copied(dz), dGated);
            kernels.geGluBackward(gated, dz, gated);

            assertClose("z", z, geGlu(in), 1e-6);
            assertClose("dGated", dGated, gradient(in, v -> inner(geGlu(v), weights)), 1e-5);
            assertClose("dGated in place", gated, values(dGated), 0);
        }
    }

    @Test
    void tanhMeetsItsFormulaAndItsGradientFiniteDifferences() {
        for (int width : new int[] {1, 7, 16, 33}) {
            Tensor y = normalsWithGaps(4, width);
            HostMatrix.of(y).set(0, 0, 60f);
            HostMatrix.of(y).set(1, 0, -60f);
            Tensor bias = normals(1, width);
            Tensor dy = normalsWithGaps(4, width);
            double[][] in = values(y);
            for (double[] row : in) {
                for (int j = 0; j < width; j++) {
                    row[j] += values(bias)[0][j];
                }
            }
            double[][] weights = values(dy);

            kernels.biasTanh(y, bias);
            kernels.tanhBackward(y, dy);

            assertClose("tanh", y, tanh(in), 1e-6);
            assertClose("tanh'", dy, gradient(in, v -> inner(tanh(v), weights)), 1e-5);
        }
    }

    private static double[][] tanh(double[][] x) {
        return Arrays.stream(x)
                .map(row -> Arrays.stream(row).map(Math::tanh).toArray())
                .toArray(double[][]::new);
    }

    private static double[][] geGlu(double[][] gated) {
        int width = gated[0].length / 2;
        double[][] z = new double[gated.length][width];
        for (int i = 0; i < z.length; i++) {
            double[][] open = Truth.exactGelu(new double[][] {gated[i]});
            for (int j = 0; j < width; j++) {
                z[i][j] = open[0][j] * gated[i][width + j];
            }
        }
        return z;
    }

    /** Which are rotations of halves, of other columns. */
    @Test
    void neighboursTurnLikeHalves() {
        for (int half : new int[] {1, 3, 8, 17}) {
            Tensor turns = normals(4, 2 * half);
            Tensor neighbours = normalsWithGaps(8, 6 * half);
            Tensor halves = zeros(8, 6 * half);
            for (int i = 0; i < 8; i++) {
                for (int j = 0; j < 6 * half; j++) {
                    float value = HostMatrix.of(neighbours).get(i, j);
                    HostMatrix.of(halves).set(i, inHalves(j, half), value);
                }
            }

            for (boolean back : new boolean[] {false, true}) {
                kernels.rotate(halves, turns, back);
                kernels.rotateNeighbours(neighbours, turns, back);

                double[][] truth = values(neighbours);
                for (int i = 0; i < 8; i++) {
                    for (int j = 0; j < 6 * half; j++) {
                        truth[i][j] = HostMatrix.of(halves).get(i, inHalves(j, half));
                    }
                }
                assertClose("turned", neighbours, truth, 1e-6);
            }
        }
    }

    private static int inHalves(int column, int half) {
        int inHead = column % (2 * half);
        return column - inHead + inHead % 2 * half + inHead / 2;
    }

    @Test
    void statesOfAnotherSliceAreRefused() {
        Tensor qkv = zeros(SEQUENCES * TOKENS, SHAPE.columns());
        var blocks = new TokenBlocks(SEQUENCES, TOKENS, 0, 8);

        assertThatThrownBy(
                        () ->
                                kernels.retentionStates(
                                        qkv,
                                        zeros(SEQUENCES, SHAPE.stateColumns()),
                                        SHAPE,
                                        TOKENS,
                                        blocks))
                .hasMessageStartingWith("retentionStates: expected states F32 [8, 48], got");
    }
}
