package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.HostMatrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

@ParameterizedClass
@MethodSource("devices")
class WholeTensorContractTest extends KernelContract {
    private static final int[][] SHAPES = {{1, 1}, {3, 7}, {5, 33}, {130, 67}};

    WholeTensorContractTest(DeviceSettings settings) {
        super(settings);
    }

    @Test
    void zeroClearsTheTensorAndNothingElse() {
        Tensor wide = normals(6, 20);
        double[][] before = values(wide);

        kernels.zero(wide.columns(5, 9));

        double[][] after = values(wide);
        for (int i = 0; i < 6; i++) {
            for (int j = 0; j < 20; j++) {
                assertThat(after[i][j]).isEqualTo(j >= 5 && j < 14 ? 0 : before[i][j]);
            }
        }
    }

    @Test
    void addAddsAndCopyCopies() {
        for (int[] s : SHAPES) {
            Tensor x = normalsWithGaps(s[0], s[1]);
            Tensor y = normals(s[0], s[1]);
            double[][] truth = plus(values(x), values(y));

            kernels.add(x, y);
            assertClose("sum", y, truth);

            kernels.copy(x, y);
            assertClose("copy", y, values(x), 0);
        }
    }

    @Test
    void subtractRoundsOnce() {
        for (int[] s : SHAPES) {
            Tensor x = normalsWithGaps(s[0], s[1]);
            Tensor y = normalsWithGaps(s[0], s[1]);
            double[][] of = values(x);
            double[][] truth = values(y);
            for (int i = 0; i < s[0]; i++) {
                for (int j = 0; j < s[1]; j++) {
                    truth[i][j] = (float) (truth[i][j] - of[i][j]); // rounded once
                }
            }

            kernels.subtract(x, y);

            assertClose("difference", y, truth, 0);
        }
    }

    @Test
    void blendRoundsTwice() {
        for (int[] s : SHAPES) {
            Tensor x = normalsWithGaps(s[0], s[1]);
            Tensor y = normalsWithGaps(s[0], s[1]);
            double[][] of = values(x);
            double[][] truth = values(y);
            for (int i = 0; i < s[0]; i++) {
                for (int j = 0; j < s[1]; j++) {
                    float old = 0.9f * (float) truth[i][j];
                    truth[i][j] = Math.fma(-0.35f, (float) of[i][j], old);
                }
            }

            kernels.blend(-0.35f, x, 0.9f, y);

            assertClose("blend", y, truth, 0);
        }
    }

    @Test
    void conversionToBFloat16RoundsToNearestEven() {
        for (int[] s : SHAPES) {
            Tensor x = normals(s[0], s[1]);
            HostMatrix.of(x).set(0, 0, 1 + 0x1p-8f);
            Tensor narrow = device.memory().tensor("n", DType.BF16, s[0], s[1]);
            Tensor wide = zeros(s[0], s[1]);

            kernels.copy(x, narrow);
            kernels.copy(narrow, wide);

            assertClose("bf16", wide, Truth.roundedToBFloat16(values(x)), 0);
        }
    }

    /** Every half there is, and floats between them; GPUs have no halves. */
    @Test
    void conversionToHalvesIsThatOfTheLanguage() {
        if (device.kernels().writesBFloat16()) {
            return;
        }
        int n = 1 << 17;
        Tensor x = zeros(1, n);
        float[] values = new float[n];
        for (int i = 0; i < n; i++) {
            float half = Float.float16ToFloat((short) (i >> 1));
            values[i] = i % 2 == 0 ? half : half * (1 + 0x1p-11f);
            values[i] = Float.isNaN(values[i]) ? Float.NaN : values[i];
        }
        x.write(MemorySegment.ofArray(values));
        Tensor narrow = device.memory().tensor("n", DType.F16, 1, n);
        Tensor wide = zeros(1, n);

        kernels.copy(x, narrow);
        kernels.copy(narrow, wide);

        float[] back = wide.contents().toArray(ValueLayout.JAVA_FLOAT);
        for (int i = 0; i < n; i++) {
            float expected = Float.float16ToFloat(Float.floatToFloat16(values[i]));
            assertThat(Float.floatToIntBits(back[i])).isEqualTo(Float.floatToIntBits(expected));
        }
    }

    @Test
    void conversionToBFloat16KeepsWhatIsNotFinite() {
        float[] special = {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, -0f};
        Tensor x = zeros(1, 40);
        for (int j = 0; j < 40; j++) {
            HostMatrix.of(x).set(0, j, special[j % special.length]);
        }
        Tensor narrow = device.memory().tensor("n", DType.BF16, 1, 40);

        kernels.copy(x, narrow);

        for (int j = 0; j < 40; j++) {
            assertThat(Float.valueOf(HostMatrix.of(narrow).get(0, j)))
                    .isEqualTo(Float.valueOf(special[j % special.length]));
        }
    }

    @Test
    void integersAreCopied() {
        Tensor x = indices(50, 1000);
        Tensor y = indices(50, 1000);

        kernels.copy(x, y);

        assertThat(integers(y)).containsExactly(integers(x));
    }

    @Test
    void squaredNormSumsInDouble() {
        for (int[] s : SHAPES) {
            Tensor x = normals(s[0], s[1]);
            double truth = inner(values(x), values(x));

            assertThat(kernels.squaredNorm(x)).isCloseTo(truth, within(1e-12 * truth));
        }
    }

    @Test
    void squaresOfTheLargestFloatsDoNotOverflow() {
        Tensor x = zeros(3, 50);
        for (int j = 0; j < 50; j++) {
            HostMatrix.of(x).set(1, j, Float.MAX_VALUE);
        }

        double square = (double) Float.MAX_VALUE * Float.MAX_VALUE;
        assertThat(kernels.squaredNorm(x)).isCloseTo(50 * square, within(1e-10 * square));
    }

    @Test
    void oneBadElementIsFoundWhereverItIs() {
        Tensor x = normals(100, 47);
        assertThat(kernels.allFinite(x)).isTrue();
        for (float bad :
                new float[] {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY}) {
            for (int[] at : new int[][] {{0, 0}, {50, 13}, {99, 46}}) {
                float old = HostMatrix.of(x).get(at[0], at[1]);
                HostMatrix.of(x).set(at[0], at[1], bad);

                assertThat(kernels.allFinite(x)).isFalse();
                assertThat(kernels.squaredNorm(x)).isNotFinite();

                HostMatrix.of(x).set(at[0], at[1], old);
            }
        }
    }

    @Test
    void theFirstOfWatchedTensorsThatIsNotFiniteIsTold() {
        Tensor good = normals(7, 13);
        Tensor bad = normals(5, 3);
        HostMatrix.of(bad).set(4, 2, Float.NaN);

        for (int time = 0; time < 3; time++) {
            assertThat(kernels.watchFinite(good)).isTrue();
            boolean known = !kernels.watchFinite(bad);
            assertThat(kernels.watchFinite(good)).isTrue();
            known |= !kernels.watchFinite(bad);

            int first = kernels.firstNotFinite();
            assertThat(known ? first : first - 2).isEqualTo(-1);
            assertThat(kernels.firstNotFinite()).isEqualTo(-1);
        }
    }

    @Test
    void whatIsLookedAtLaterIsFoundAtAnyPlaceAndInTheOrderOfTheCalls() {
        int[][] shapes = {{1, 1}, {1, 5}, {3, 257}, {1, 3072}, {130, 67}, {1, 70_001}};
        for (int bad = 0; bad < shapes.length; bad++) {
            for (int[] at : new int[][] {{0, 0}, {shapes[bad][0] - 1, shapes[bad][1] - 1}}) {
                boolean known = false;
                Tensor[] watched = new Tensor[shapes.length];
                for (int i = 0; i < shapes.length; i++) {
                    watched[i] = normalsWithGaps(shapes[i][0], shapes[i][1]);
                    if (i == bad) {
                        HostMatrix.of(watched[i]).set(at[0], at[1], Float.NEGATIVE_INFINITY);
                    }
                    known |=
                            i % 3 == 2
                                    ? !kernels.watchFinite(watched[i])
                                    : !kernels.watchFiniteLater(watched[i]);
                }

                assertThat(kernels.firstNotFinite()).isEqualTo(known ? -1 : bad);
                assertThat(kernels.firstNotFinite()).isEqualTo(-1);
            }
        }
    }

    @Test
    void whatIsNotFiniteBesideATensorIsNoneOfItsBusiness() {
        Tensor wide = normals(4, 40);
        HostMatrix.of(wide).set(1, 10, Float.NaN);

        assertThat(kernels.watchFiniteLater(wide.columns(11, 20))).isTrue();

        assertThat(kernels.firstNotFinite()).isEqualTo(-1);
    }

    @Test
    void nothingThatWasWatchedIsLeftWhenItIsForgotten() {
        Tensor bad = normals(1, 9);
        HostMatrix.of(bad).set(0, 8, Float.NaN);
        boolean _ = kernels.watchFinite(bad);
        boolean _ = kernels.watchFiniteLater(bad);

        kernels.watchNone();

        assertThat(kernels.firstNotFinite()).isEqualTo(-1);
    }

    @Test
    void adamWFollowsItsFormula() {
        for (int[] s : SHAPES) {
            Tensor w = normals(s[0], s[1]);
            Tensor g = normals(s[0], s[1]);
            Tensor m = normals(s[0], s[1]);
            Tensor v = normals(s[0], s[1]);
            double[][] truth = values(w);
            double[][] gradients = values(g);
            double[][] means = values(m);
            double[][] squares = values(v);
            for (int i = 0; i < s[0]; i++) {
                for (int j = 0; j < s[1]; j++) {
                    HostMatrix.of(v).set(i, j, Math.abs(HostMatrix.of(v).get(i, j)));
                    double gradient = gradients[i][j] * 0.7;
                    double first = 0.9 * means[i][j] + 0.1 * gradient;
                    double second = 0.95 * Math.abs(squares[i][j]) + 0.05 * gradient * gradient;
                    double root = Math.sqrt(second / (1 - Math.pow(0.95, 3))) + 1e-8;
                    truth[i][j] *= 1 - 0.01 * 0.1;
                    truth[i][j] -= 0.01 * first / (1 - Math.pow(0.9, 3)) / root;
                }
            }

            kernels.adamW(w, g, m, v, new AdamWStep(3, 0.01, 0.9, 0.95, 1e-8, 0.1, 0.7));

            assertClose("weight", w, truth, 1e-6);
            assertClose("gradient", g, new double[s[0]][s[1]], 0);
        }
    }

    /**
     * Around the ends of a GPU's blocks and of its loads of four, and where rows begin anywhere.
     */
    @Test
    void adamWOfManyIsAdamWOfEachAndRoundsItsWeights() {
        int[] lengths = {1, 3, 4, 5, 768, 2 * 4096, 4095, 4096, 4097, 3 * 4096 + 2, 12, 20_011};
        AdamWStep step = new AdamWStep(3, 0.01, 0.9, 0.95, 1e-8, 0.1, 0.7);
        List<AdamWParameter> many = new ArrayList<>();
        List<AdamWParameter> each = new ArrayList<>();
        List<Tensor> roundings = new ArrayList<>();
        for (int i = 0; i < lengths.length; i++) {
            int first = i % 3 == 2 ? 1 : 0;
            boolean isRounded = i % 2 == 0;
            AdamWParameter parameter =
                    parameter(lengths[i], first, isRounded, i % 4 < 2, roundings);
            many.add(parameter);
            each.add(
                    new AdamWParameter(
                            copied(parameter.weight()),
                            copied(parameter.gradient()),
                            copied(parameter.m()),
                            copied(parameter.v()),
                            null,
                            parameter.decays()));
        }

        kernels.adamW(many, step);

        for (int i = 0; i < lengths.length; i++) {
            AdamWParameter one = each.get(i);
            kernels.adamW(
                    one.weight(),
                    one.gradient(),
                    one.m(),
                    one.v(),
                    one.decays() ? step : step.withoutDecay());
            AdamWParameter of = many.get(i);
            assertClose("weight " + i, of.weight(), values(one.weight()), 0);
            assertClose("gradient " + i, of.gradient(), new double[1][lengths[i]], 0);
            assertClose("m " + i, of.m(), values(one.m()), 0);
            assertClose("v " + i, of.v(), values(one.v()), 0);
            Tensor rounded = of.rounded();
            if (rounded != null) {
                double[][] truth = Truth.roundedToBFloat16(values(of.weight()));
                assertClose("rounded " + i, rounded, truth, 0);
            }
        }
        for (Tensor wide : roundings) { // nothing beside what was to be rounded
            assertThat(HostMatrix.of(wide).get(0, 0)).isEqualTo(7);
            assertThat(HostMatrix.of(wide).get(0, wide.columns() - 1)).isEqualTo(7);
        }
    }

    private AdamWParameter parameter(
            int length, int first, boolean isRounded, boolean decays, List<Tensor> roundings) {
        Tensor v = normals(1, length);
        for (int j = 0; j < length; j++) {
            HostMatrix.of(v).set(0, j, Math.abs(HostMatrix.of(v).get(0, j)));
        }
        Tensor rounded = null;
        if (isRounded) {
            Tensor wide = device.memory().tensor("wide", DType.BF16, 1, length + 16);
            HostMatrix.of(wide).set(0, 0, 7);
            HostMatrix.of(wide).set(0, length + 15, 7);
            roundings.add(wide);
            rounded = wide.columns(8 + first, length);
        }
        return new AdamWParameter(
                normals(1, length + 1).columns(first, length),
                normals(1, length + 8).columns(4, length),
                normals(1, length),
                v,
                rounded,
                decays);
    }

    @Test
    void gapsAreRefusedWhereTheyWouldBeWrong() {
        assertThatThrownBy(() -> kernels.squaredNorm(normalsWithGaps(3, 4)))
                .hasMessageContaining("squaredNorm: expected x without gaps between rows")
                .hasMessageContaining("stride 11");
    }
}
