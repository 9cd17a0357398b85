package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.FixedPoint;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.HostMatrix;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Exact sums of gradients beside arithmetic with as many digits as it takes. */
@ParameterizedClass
@MethodSource("devices")
class GradientSumContractTest extends KernelContract {
    /** Around the ends of vectors, of a CPU's runs and of a GPU's blocks. */
    private static final int[] LENGTHS = {1, 3, 8, 15, 16, 33, 4095, 4096, 4097, 20_011};

    private static final BigDecimal ONE = BigDecimal.valueOf(2).pow(44);
    private static final float LIMIT = FixedPoint.limit(8);

    GradientSumContractTest(DeviceSettings settings) {
        super(settings);
    }

    private static long integer(float number) {
        return new BigDecimal(number)
                .multiply(ONE)
                .setScale(0, RoundingMode.HALF_EVEN)
                .longValueExact();
    }

    /** Numbers of all magnitudes, with signs. */
    private float[] numbers(int count, float largest) {
        float[] numbers = new float[count];
        for (int i = 0; i < count; i++) {
            float magnitude = Math.scalb(1 + random.nextFloat(), -random.nextInt(60));
            numbers[i] = largest / 2 * magnitude * (random.nextBoolean() ? 1 : -1);
        }
        return numbers;
    }

    private Tensor floats(float[] numbers) {
        Tensor tensor = zeros(1, numbers.length);
        HostMatrix.of(tensor).setRow(0, numbers);
        return tensor;
    }

    private Tensor longs(int count) {
        return device.memory().tensor("sums", DType.I64, 1, count);
    }

    private static long[] longs(Tensor tensor) {
        return HostMatrix.of(tensor).longs(0);
    }

    @Test
    void everyElementBecomesTheNearestIntegerAndIsCleared() {
        for (int length : LENGTHS) {
            for (float largest : new float[] {1, 128, LIMIT}) {
                float[] numbers = numbers(length, largest);
                Tensor gradient = floats(numbers);
                Tensor sum = longs(length);
                HostMatrix.of(sum).setLongs(0, anyLongs(length));

                boolean within = kernels.foldGradient(gradient, sum, LIMIT, false);

                assertThat(within).isTrue();
                assertThat(kernels.firstNotFinite()).isEqualTo(-1);
                long[] truth = new long[length];
                for (int i = 0; i < length; i++) {
                    truth[i] = integer(numbers[i]);
                }
                assertThat(longs(sum)).isEqualTo(truth);
                assertThat(HostMatrix.of(gradient).row(0)).isEqualTo(new float[length]);
            }
        }
    }

    private long[] anyLongs(int count) {
        long[] any = new long[count];
        for (int i = 0; i < count; i++) {
            any[i] = random.nextLong() >> 3;
        }
        return any;
    }

    @Test
    void whatLiesHalfWayGoesToTheEvenInteger() {
        float[] numbers = new float[64];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = Math.scalb(i - 32 + 0.5f, -44);
        }
        numbers[0] = LIMIT;
        numbers[1] = -LIMIT;
        numbers[2] = Float.MIN_VALUE;
        numbers[3] = -0f;
        Tensor sum = longs(numbers.length);

        boolean within = kernels.foldGradient(floats(numbers), sum, LIMIT, false);

        assertThat(within).isTrue();
        long[] sums = longs(sum);
        for (int i = 0; i < numbers.length; i++) {
            assertThat(sums[i]).as("of %s", numbers[i]).isEqualTo(integer(numbers[i]));
        }
    }

    @Test
    void aSumHasTheSameBitsInEveryOrderAndByWhomeverItIsAdded() {
        int addends = 8;
        int length = 4500;
        List<float[]> gradients = new ArrayList<>();
        for (int i = 0; i < addends; i++) {
            gradients.add(numbers(length, i == 3 ? LIMIT : 4));
        }
        long[] truth = new long[length];
        for (float[] gradient : gradients) {
            for (int i = 0; i < length; i++) {
                truth[i] = Math.addExact(truth[i], integer(gradient[i]));
            }
        }
        for (int members = 1; members <= 4; members++) {
            Collections.shuffle(gradients, random);
            List<Tensor> sums = new ArrayList<>();
            for (int i = 0; i < addends; i++) {
                int member = i < members ? i : random.nextInt(members);
                if (i < members) {
                    sums.add(longs(length));
                }
                boolean within =
                        kernels.foldGradient(
                                floats(gradients.get(i)), sums.get(member), LIMIT, i >= members);
                assertThat(within).isTrue();
            }
            Collections.shuffle(sums, random);
            sums.stream().skip(1).forEach(sum -> kernels.add(sum, sums.getFirst()));

            assertThat(longs(sums.getFirst())).isEqualTo(truth);
        }
        assertThat(kernels.firstNotFinite()).isEqualTo(-1);
    }

    @Test
    void aSumBecomesTheNearestFloat() {
        for (int length : LENGTHS) {
            for (int bits : new int[] {20, 50, 52, 62}) {
                long[] sums = new long[length];
                for (int i = 0; i < length; i++) {
                    sums[i] = random.nextLong() >> (63 - bits) >> random.nextInt(bits);
                }
                Tensor sum = longs(length);
                HostMatrix.of(sum).setLongs(0, sums);
                Tensor gradient = normals(1, length);

                kernels.unfoldGradient(sum, gradient);

                float[] truth = new float[length];
                for (int i = 0; i < length; i++) {
                    truth[i] = BigDecimal.valueOf(sums[i]).divide(ONE).floatValue();
                }
                assertThat(HostMatrix.of(gradient).row(0)).isEqualTo(truth);
                assertThat(longs(sum)).isEqualTo(sums);
            }
        }
    }

    @Test
    void integersAreAddedCopiedAndClearedWithAllTheirBits() {
        for (int length : LENGTHS) {
            long[] left = anyLongs(length);
            long[] right = anyLongs(length);
            Tensor x = longs(length + 3).columns(3, length);
            Tensor y = longs(length);
            HostMatrix.of(x).setLongs(0, left);
            HostMatrix.of(y).setLongs(0, right);

            kernels.add(x, y);

            long[] truth = new long[length];
            for (int i = 0; i < length; i++) {
                truth[i] = left[i] + right[i];
            }
            assertThat(longs(y)).isEqualTo(truth);
            kernels.copy(y, x);
            assertThat(longs(x)).isEqualTo(truth);
            kernels.zero(x);
            assertThat(longs(x)).isEqualTo(new long[length]);
        }
    }

    @Test
    void anElementThatIsNoNumberOrTooLargeIsFoundLikeOneThatIsWatched() {
        float tooLarge = Math.nextUp(LIMIT);
        for (float bad : new float[] {Float.NaN, Float.NEGATIVE_INFINITY, tooLarge, -tooLarge}) {
            for (int at : new int[] {0, 4099, 5000 - 1}) {
                float[] numbers = numbers(5000, 1);
                numbers[at] = bad;
                Tensor good = floats(numbers(5000, 1));
                Tensor sum = longs(5000);

                boolean known = !kernels.foldGradient(good, sum, LIMIT, false);
                assertThat(known).isFalse();
                known = !kernels.foldGradient(floats(numbers), sum, LIMIT, true);

                assertThat(kernels.firstNotFinite()).isEqualTo(known ? -1 : 1);
                assertThat(kernels.firstNotFinite()).isEqualTo(-1);
            }
        }
    }

    @Test
    void sumsOfAnotherTypeOrSizeAreRefused() {
        assertThatThrownBy(() -> kernels.foldGradient(normals(1, 4), zeros(1, 4), 1, true))
                .hasMessageContaining("foldGradient: expected sum I64 [1, 4], got F32");
        assertThatThrownBy(() -> kernels.unfoldGradient(longs(5), normals(1, 4)))
                .hasMessageContaining("unfoldGradient: expected sum I64 [1, 4], got I64 [1, 5]");
        assertThatThrownBy(() -> kernels.add(normals(1, 4), longs(4)))
                .hasMessageContaining("add: expected x I64 [1, 4], got F32");
        assertThatThrownBy(() -> kernels.copy(normals(1, 4), longs(4)))
                .hasMessageContaining("floats to floats or integers to integers");
    }
}
