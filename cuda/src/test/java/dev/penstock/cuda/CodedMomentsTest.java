package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.Dynamic8;
import dev.penstock.cuda.kernels.HostMatrix;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Moments in 8 bits, against a plain reading of the paper: all 256 values are tried for each. */
class CodedMomentsTest {
    private static final int BLOCK = 256;
    private static final int STRIDE = BLOCK + Float.BYTES;
    private static final AdamWStep STEP = new AdamWStep(3, 0.01, 0.9, 0.95, 1e-8, 0.1, 0.7);

    private final Random random = new Random(7);

    static Stream<DeviceSettings> devices() {
        DeviceSettings java =
                DeviceSettings.DEFAULTS.withKind(Kind.CPU).withGemm(Gemm.JAVA).withThreads(2);
        return Stream.of(
                java.withVectorBits(256),
                java.withVectorBits(512),
                DeviceSettings.DEFAULTS.withKind(Kind.REFERENCE));
    }

    private static Dynamic8 codes(boolean signed) {
        return signed ? Dynamic8.SIGNED : Dynamic8.POSITIVE;
    }

    /** The values as the authors' library makes them: middles between equally spaced borders. */
    private static float[] valuesOfThePaper(boolean signed) {
        float[] values = new float[256];
        int at = 0;
        for (int exponent = 0; exponent < 7; exponent++) {
            int borders = (1 << (signed ? exponent : exponent + 1)) + 1;
            for (int i = 0; i + 1 < borders; i++) {
                double low = 0.1 + i * (0.9 / (borders - 1));
                double high = 0.1 + (i + 1) * (0.9 / (borders - 1));
                double value = Math.pow(10, exponent - 6) * (low + high) / 2;
                values[at++] = (float) value;
                if (signed) {
                    values[at++] = (float) -value;
                }
            }
        }
        values[at++] = 0;
        values[at++] = 1;
        assertThat(at).isEqualTo(256);
        Arrays.sort(values);
        return values;
    }

    /** The nearest of all values; half way the smaller one; never 0 for what is above 0. */
    private static float nearest(float[] values, float quotient, boolean signed) {
        float best = Float.NaN;
        double least = Double.POSITIVE_INFINITY;
        for (float value : values) {
            if (!signed && value == 0 && quotient > 0) {
                continue;
            }
            double distance = Math.abs((double) quotient - value);
            if (distance < least || (distance == least && Math.abs(value) < Math.abs(best))) {
                best = value;
                least = distance;
            }
        }
        return best;
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void codesStandForTheValuesOfThePaper(boolean signed) {
        float[] values = new float[256];
        for (int code = 0; code < 256; code++) {
            values[code] = codes(signed).value((byte) code);
        }
        assertThat(values[0]).isZero();
        Arrays.sort(values);

        float[] expected = valuesOfThePaper(signed);

        for (int i = 0; i < 256; i++) {
            assertThat(values[i]).isCloseTo(expected[i], withinUlps(expected[i]));
        }
        assertThat(values[254]).isBetween(signed ? 0.9929f : 0.9964f, signed ? 0.993f : 0.9965f);
    }

    private static org.assertj.core.data.Offset<Float> withinUlps(float value) {
        return org.assertj.core.api.Assertions.within(2 * Math.ulp(value));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCodeIsTheNearestOfAll(boolean signed) {
        Dynamic8 codes = codes(signed);
        float[] values = new float[256];
        for (int code = 0; code < 256; code++) {
            values[code] = codes.value((byte) code);
        }
        float[] sorted = values.clone();
        Arrays.sort(sorted);
        for (int i = 0; i + 1 < 256; i++) {
            float middle = (float) (((double) sorted[i] + sorted[i + 1]) / 2);
            for (float q : new float[] {Math.nextDown(middle), middle, Math.nextUp(middle)}) {
                assertNearest(codes, values, q, signed);
            }
            assertNearest(codes, values, sorted[i], signed);
        }
        for (int i = 0; i < 20_000; i++) {
            float q = (float) Math.pow(10, -9 * random.nextDouble());
            assertNearest(codes, values, signed && random.nextBoolean() ? -q : q, signed);
        }
        assertNearest(codes, values, Float.MIN_VALUE, signed);
    }

    private static void assertNearest(Dynamic8 codes, float[] values, float q, boolean signed) {
        assertThat(codes.value(codes.code(q))).as("%s", q).isEqualTo(nearest(values, q, signed));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatWasDecodedIsCodedTheSame(boolean signed) {
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withKind(Kind.REFERENCE))) {
            Tensor coded = coded(device.memory(), "moment", 400 * BLOCK, signed);
            HostMatrix blocks = HostMatrix.of(coded);
            for (int block = 0; block < coded.rows(); block++) {
                blocks.setRow(block, drawn(BLOCK, 1e-12 * Math.pow(10, block / 20.0), signed));
            }
            byte[] before = bytes(coded);

            for (int block = 0; block < coded.rows(); block++) {
                blocks.setRow(block, blocks.row(block));
            }

            assertThat(bytes(coded)).isEqualTo(before);
        }
    }

    @Test
    void theLargestElementIsKeptWithItsSignAndAlmostNothingIsNothing() {
        assertThat(Dynamic8.scale(-3, 2)).isEqualTo(-3);
        assertThat(Dynamic8.scale(-2, 2)).isEqualTo(2);
        assertThat(Dynamic8.scale(-0x1p-101f, 0)).isZero();
        assertThat(Dynamic8.scale(0, Float.POSITIVE_INFINITY)).isEqualTo(Float.MAX_VALUE);
        assertThat(Dynamic8.scale(Float.NaN, Float.NaN)).isNaN();
    }

    @ParameterizedTest
    @MethodSource("devices")
    void anUpdateIsThatOfDecodedMomentsCodedAgain(DeviceSettings settings) {
        try (Device device = Devices.open(settings)) {
            for (int length : new int[] {1, 255, 256, 257, 5000, 40_000}) {
                updates(device, length);
            }
        }
    }

    private void updates(Device device, int length) {
        try (DeviceScope scope = device.memory().child("update", Long.MAX_VALUE)) {
            Tensor m = coded(scope, "m", length, true);
            Tensor v = coded(scope, "v", length, false);
            fill(m, drawn(length, 0.1, true));
            fill(v, drawn(length, 0.01, false));
            Tensor weight = row(scope, "weight", drawn(length, 1, true));
            Tensor gradient = row(scope, "gradient", drawn(length, 1, true));
            Tensor plain = row(scope, "plain weight", HostMatrix.of(weight).row(0));
            Tensor same = row(scope, "same gradient", HostMatrix.of(gradient).row(0));
            Tensor means = row(scope, "means", decoded(m, length));
            Tensor squares = row(scope, "squares", decoded(v, length));

            device.kernels().adamW(weight, gradient, m, v, STEP);

            device.kernels().adamW(plain, same, means, squares, STEP);
            assertThat(HostMatrix.of(weight).row(0)).isEqualTo(HostMatrix.of(plain).row(0));
            assertThat(HostMatrix.of(gradient).row(0)).containsOnly(0);
            assertThat(decoded(m, length)).isEqualTo(bruteForce(means, true));
            assertThat(decoded(v, length)).isEqualTo(bruteForce(squares, false));
        }
    }

    /** What becomes of a row of floats that is coded in blocks and decoded. */
    private static float[] bruteForce(Tensor row, boolean signed) {
        float[] values = HostMatrix.of(row).row(0);
        float[] paper = new float[256];
        for (int code = 0; code < 256; code++) {
            paper[code] = codes(signed).value((byte) code);
        }
        float[] coded = new float[values.length];
        for (int first = 0; first < values.length; first += BLOCK) {
            int end = Math.min(values.length, first + BLOCK);
            float scale = 0;
            for (int i = first; i < end; i++) {
                boolean larger = Math.abs(values[i]) > Math.abs(scale);
                scale = larger || (values[i] == -scale && values[i] > 0) ? values[i] : scale;
            }
            for (int i = first; i < end; i++) {
                coded[i] = scale == 0 ? 0 : nearest(paper, values[i] / scale, signed) * scale;
            }
        }
        return coded;
    }

    @Test
    void momentsOfAnotherShapeAreRefused() {
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withKind(Kind.CPU))) {
            Tensor weight = row(device.memory(), "weight", new float[600]);
            Tensor gradient = row(device.memory(), "gradient", new float[600]);
            Tensor m = coded(device.memory(), "m", 600, true);
            Tensor v = coded(device.memory(), "v", 512, false);

            assertThatThrownBy(() -> device.kernels().adamW(weight, gradient, m, v, STEP))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("adamW")
                    .hasMessageContaining("[3, 256]");
        }
    }

    private static Tensor coded(DeviceScope scope, String name, int length, boolean signed) {
        int blocks = Math.ceilDiv(length, BLOCK);
        return new Tensor(
                scope.allocate(name, (long) blocks * STRIDE),
                0,
                signed ? DType.DYNAMIC8 : DType.DYNAMIC8_POSITIVE,
                blocks,
                BLOCK,
                STRIDE);
    }

    private static void fill(Tensor coded, float[] values) {
        for (int block = 0; block < coded.rows(); block++) {
            float[] part = Arrays.copyOfRange(values, block * BLOCK, (block + 1) * BLOCK);
            HostMatrix.of(coded).setRow(block, part);
        }
    }

    private static float[] decoded(Tensor coded, int length) {
        float[] all = new float[coded.rows() * BLOCK];
        for (int block = 0; block < coded.rows(); block++) {
            System.arraycopy(HostMatrix.of(coded).row(block), 0, all, block * BLOCK, BLOCK);
        }
        return Arrays.copyOf(all, length);
    }

    private static byte[] bytes(Tensor coded) {
        return coded.buffer().segment().toArray(ValueLayout.JAVA_BYTE);
    }

    private static Tensor row(DeviceScope scope, String name, float[] values) {
        Tensor row = scope.tensor(name, DType.F32, 1, values.length);
        HostMatrix.of(row).setRow(0, values);
        return row;
    }

    /** Of very different magnitudes. */
    private float[] drawn(int length, double size, boolean signed) {
        float[] values = new float[length];
        for (int i = 0; i < length; i++) {
            double value = size * random.nextGaussian() * Math.pow(10, -6 * random.nextDouble());
            values[i] = (float) (signed ? value : Math.abs(value));
        }
        return values;
    }
}
