package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.Arrays;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * An element of a product has the same bits however many tokens are multiplied with it, and on any
 * number of threads. Shapes are drawn, since a library that breaks this does so for few of them.
 */
@ParameterizedClass
@MethodSource("devices")
class ProductBitsTest {
    private static final int PRODUCTS = 300;

    private final DeviceSettings settings;
    private final DType multiply;

    ProductBitsTest(DeviceSettings settings, DType multiply) {
        this.settings = settings;
        this.multiply = multiply;
    }

    static Stream<Arguments> devices() {
        DeviceSettings cpu = DeviceSettings.DEFAULTS.withKind(Kind.CPU);
        return Stream.of(cpu, cpu.withGemm(Gemm.JAVA))
                .flatMap(
                        device ->
                                Stream.of(DType.F32, DType.BF16)
                                        .map(type -> Arguments.of(device, type)));
    }

    private static Tensor drawn(DeviceScope scope, String name, int rows, int columns, long seed) {
        Tensor tensor = scope.tensor(name, DType.F32, rows, columns);
        SplittableRandom random = new SplittableRandom(seed);
        float[] row = new float[columns];
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                row[j] = random.nextFloat() - 0.5f;
            }
            HostMatrix.of(tensor).setRow(i, row);
        }
        return tensor;
    }

    @Test
    void someTokensHaveTheBitsOfAllTokens() {
        Random random = new Random(7);
        try (Device two = Devices.open(settings.withThreads(2));
                Device one = Devices.open(settings.withThreads(1))) {
            for (int i = 0; i < PRODUCTS; i++) {
                int tokens = 2 + random.nextInt(200);
                int from =
                        random.nextBoolean() ? 1 + random.nextInt(64) : 2 + 2 * random.nextInt(350);
                int to = 1 + random.nextInt(random.nextBoolean() ? 40 : 400);
                boolean transposed = random.nextInt(4) == 0;
                int first = random.nextInt(tokens);
                int count = 1 + random.nextInt(tokens - first);

                float[][] all = product(two, i, tokens, from, to, transposed, 0, tokens);
                float[][] some = product(one, i, tokens, from, to, transposed, first, count);

                float[][] expected = Arrays.copyOfRange(all, first, first + count);
                assertThat(Arrays.deepEquals(some, expected))
                        .as(
                                "product %d: tokens %d to %d of %d, %d columns to %d%s",
                                i,
                                first,
                                first + count,
                                tokens,
                                from,
                                to,
                                transposed ? ", transposed" : "")
                        .isTrue();
            }
        }
    }

    private float[][] product(
            Device device,
            long seed,
            int tokens,
            int from,
            int to,
            boolean transposed,
            int first,
            int count) {
        try (DeviceScope scope = device.memory().child("product " + seed, Long.MAX_VALUE)) {
            Tensor x = drawn(scope, "x", tokens, from, seed);
            Tensor weight =
                    transposed
                            ? drawn(scope, "weight", to, from, seed + 1)
                            : drawn(scope, "weight", from, to, seed + 1);
            Tensor y = scope.tensor("y", DType.F32, count, to);
            device.kernels()
                    .gemm(multiply, false, x.rows(first, count), transposed, weight, y, false);
            return HostMatrix.of(y).allRows();
        }
    }

    /** Among the sizes are some that leave a few rows or columns beside whole tiles. */
    @Test
    void aWeightGradientHasTheSameBitsOnAnyNumberOfThreads() {
        for (int[] size :
                new int[][] {{772, 517}, {770, 40}, {24, 1030}, {300, 300}, {1550, 515}}) {
            float[][] alone = weightGradient(1, size[0], size[1]);

            for (int threads : new int[] {2, 3, 5}) {
                assertThat(Arrays.deepEquals(weightGradient(threads, size[0], size[1]), alone))
                        .as("%d x %d on %d threads", size[0], size[1], threads)
                        .isTrue();
            }
        }
    }

    private float[][] weightGradient(int threads, int rows, int columns) {
        TokenBlocks blocks = new TokenBlocks(2, 45, 0, 32);
        try (Device device = Devices.open(settings.withThreads(threads));
                DeviceScope scope = device.memory().child("gradient", Long.MAX_VALUE)) {
            Tensor x = drawn(scope, "x", blocks.rows(), rows, 1);
            Tensor dy = drawn(scope, "dy", blocks.rows(), columns, 2);
            Tensor dWeight = drawn(scope, "dWeight", rows, columns, 3);
            device.kernels().weightGradient(multiply, x, dy, dWeight, blocks);
            return HostMatrix.of(dWeight).allRows();
        }
    }
}
