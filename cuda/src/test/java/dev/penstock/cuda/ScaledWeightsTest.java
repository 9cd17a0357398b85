package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Weights as integers of 8 bits with a scale for each row. */
@ParameterizedClass
@MethodSource("devices")
class ScaledWeightsTest {
    private final DeviceSettings settings;
    private final Random random = new Random(11);

    ScaledWeightsTest(DeviceSettings settings) {
        this.settings = settings;
    }

    static Stream<DeviceSettings> devices() {
        DeviceSettings cpu = DeviceSettings.DEFAULTS.withKind(Kind.CPU).withThreads(2);
        return Stream.of(
                cpu,
                cpu.withGemm(Gemm.JAVA).withVectorBits(256),
                DeviceSettings.DEFAULTS.withKind(Kind.REFERENCE));
    }

    private Tensor drawn(DeviceScope scope, String name, int rows, int columns) {
        Tensor tensor = scope.tensor(name, DType.F32, rows, columns);
        for (int i = 0; i < rows; i++) {
            float[] row = new float[columns];
            for (int j = 0; j < columns; j++) {
                row[j] = (float) (random.nextGaussian() * (1 + i % 5));
            }
            HostMatrix.of(tensor).setRow(i, row);
        }
        return tensor;
    }

    private static Tensor scaled(DeviceScope scope, int rows, int columns) {
        int stride = DType.I8.rowStride(columns);
        return new Tensor(
                scope.allocate("integers", (long) rows * stride),
                0,
                DType.I8,
                rows,
                columns,
                stride);
    }

    private static Tensor scaled(Device device, DeviceScope scope, Tensor floats) {
        Tensor integers = scaled(scope, floats.rows(), floats.columns());
        device.kernels().copy(floats, integers);
        return integers;
    }

    @Test
    void anElementIsOffByHalfAStepOfItsRowAtMost() {
        try (Device device = Devices.open(settings);
                DeviceScope scope = device.memory().child("rows", Long.MAX_VALUE)) {
            Tensor floats = drawn(scope, "floats", 9, 83);
            HostMatrix.of(floats).setRow(4, new float[83]);

            HostMatrix integers = HostMatrix.of(scaled(device, scope, floats));

            for (int i = 0; i < 9; i++) {
                float[] row = HostMatrix.of(floats).row(i);
                double largest = 0;
                for (float value : row) {
                    largest = Math.max(largest, Math.abs(value));
                }
                double half = largest / 127 / 2 * (1 + 1e-6);
                for (int j = 0; j < 83; j++) {
                    assertThat((double) integers.get(i, j)).isCloseTo(row[j], within(half));
                }
            }
        }
    }

    /** So that a run that is saved in floats goes on with the same integers. */
    @Test
    void floatsOfIntegersBecomeTheSameIntegers() {
        try (Device device = Devices.open(settings);
                DeviceScope scope = device.memory().child("rows", Long.MAX_VALUE)) {
            Tensor floats = scope.tensor("floats", DType.F32, 2000, 35);
            for (int i = 0; i < 2000; i++) {
                float[] row = new float[35];
                for (int j = 0; j < 35; j++) {
                    row[j] =
                            (float) (random.nextGaussian() * Math.pow(2, random.nextInt(120) - 60));
                }
                HostMatrix.of(floats).setRow(i, row);
            }
            Tensor once = scaled(device, scope, floats);
            Tensor widened = scope.tensor("widened", DType.F32, 2000, 35);
            HostMatrix.of(widened).setAllRows(HostMatrix.of(once).allRows());

            Tensor twice = scaled(device, scope, widened);

            assertThat(twice.buffer().segment().mismatch(once.buffer().segment())).isEqualTo(-1);
        }
    }

    /** As wide as the widths of models, in both directions: {@code x W} and {@code dy W^T}. */
    @Test
    void gradientsOfInputsAreThoseOfTheScaledIntegers() {
        try (Device device = Devices.open(settings);
                DeviceScope scope = device.memory().child("gradient", Long.MAX_VALUE)) {
            Tensor weight = scaled(device, scope, drawn(scope, "weight", 190, 700));
            Tensor dy = drawn(scope, "dy", 21, 700);
            Tensor dx = scope.tensor("dx", DType.F32, 21, 190);
            float[][] nothing = new float[21][190];

            device.kernels().gemm(DType.F32, false, dy, true, weight, dx, false);

            assertProduct(dy, weight, true, nothing, dx);
        }
    }

    /** Each result within the error of its sum in F32. */
    @Test
    void productsAreThoseOfTheScaledIntegers() {
        try (Device device = Devices.open(settings)) {
            for (int[] size :
                    new int[][] {{1, 70, 132}, {5, 3, 1}, {19, 300, 1000}, {40, 33, 65}}) {
                for (boolean transposed : new boolean[] {false, true}) {
                    try (DeviceScope scope = device.memory().child("product", Long.MAX_VALUE)) {
                        Tensor x = drawn(scope, "x", size[0], size[1]);
                        Tensor weight =
                                scaled(
                                        device,
                                        scope,
                                        transposed
                                                ? drawn(scope, "weight", size[2], size[1])
                                                : drawn(scope, "weight", size[1], size[2]));
                        Tensor y = drawn(scope, "y", size[0], size[2]);
                        float[][] before = HostMatrix.of(y).allRows();

                        device.kernels().gemm(DType.F32, false, x, transposed, weight, y, true);

                        assertProduct(x, weight, transposed, before, y);
                    }
                }
            }
        }
    }

    private static void assertProduct(
            Tensor x, Tensor weight, boolean transposed, float[][] before, Tensor y) {
        float[][] left = HostMatrix.of(x).allRows();
        HostMatrix right = HostMatrix.of(weight);
        float[][] result = HostMatrix.of(y).allRows();
        for (int i = 0; i < y.rows(); i++) {
            for (int j = 0; j < y.columns(); j++) {
                double sum = before[i][j];
                double magnitude = Math.abs(sum);
                for (int p = 0; p < x.columns(); p++) {
                    double term =
                            (double) left[i][p] * (transposed ? right.get(j, p) : right.get(p, j));
                    sum += term;
                    magnitude += Math.abs(term);
                }
                assertThat((double) result[i][j])
                        .isCloseTo(sum, within(magnitude * (x.columns() + 2) * 0x1p-24));
            }
        }
    }

    @Test
    void someTokensHaveTheBitsOfAllTokensOnAnyNumberOfThreads() {
        float[][] all = rows(settings, 0, 50);

        for (int threads : new int[] {1, 3}) {
            DeviceSettings others =
                    settings.kind() == Kind.CPU ? settings.withThreads(threads) : settings;
            for (int[] part : new int[][] {{0, 1}, {7, 3}, {30, 20}}) {
                float[][] some = rows(others, part[0], part[1]);
                float[][] expected = Arrays.copyOfRange(all, part[0], part[0] + part[1]);
                assertThat(Arrays.deepEquals(some, expected)).isTrue();
            }
        }
    }

    private float[][] rows(DeviceSettings of, int first, int count) {
        random.setSeed(5);
        try (Device device = Devices.open(of);
                DeviceScope scope = device.memory().child("rows", Long.MAX_VALUE)) {
            Tensor x = drawn(scope, "x", 50, 260);
            Tensor weight = scaled(device, scope, drawn(scope, "weight", 260, 1100));
            Tensor y = scope.tensor("y", DType.F32, count, 1100);
            device.kernels().gemm(DType.F32, false, x.rows(first, count), false, weight, y, false);
            return HostMatrix.of(y).allRows();
        }
    }

    @Test
    void rowsOfNarrowTablesAreLookedUpAsFloats() {
        try (Device device = Devices.open(settings);
                DeviceScope scope = device.memory().child("table", Long.MAX_VALUE)) {
            Tensor floats = drawn(scope, "floats", 6, 37);
            Tensor halves = scope.tensor("halves", DType.BF16, 6, 37);
            device.kernels().copy(floats, halves);
            Tensor tokens = scope.tensor("tokens", DType.I32, 1, 3);
            int[] wanted = {5, 0, 5};
            for (int i = 0; i < 3; i++) {
                HostMatrix.of(tokens).setInt(0, i, wanted[i]);
            }

            for (Tensor table : new Tensor[] {halves, scaled(device, scope, floats)}) {
                Tensor y = scope.tensor("y", DType.F32, 3, 37);
                device.kernels().embedding(tokens, new TokenRange(0, 6), table, y);
                for (int i = 0; i < 3; i++) {
                    assertThat(HostMatrix.of(y).row(i))
                            .isEqualTo(HostMatrix.of(table).row(wanted[i]));
                }
            }
        }
    }

    @Test
    void columnsHaveNoScale() {
        try (Device device = Devices.open(settings);
                DeviceScope scope = device.memory().child("columns", Long.MAX_VALUE)) {
            Tensor weight = scaled(device, scope, drawn(scope, "weight", 8, 32)).columns(0, 16);
            Tensor x = drawn(scope, "x", 2, 8);
            Tensor y = drawn(scope, "y", 2, 16);

            assertThatThrownBy(
                            () ->
                                    device.kernels()
                                            .gemm(DType.F32, false, x, false, weight, y, false))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("whole rows with their scales");
        }
    }
}
