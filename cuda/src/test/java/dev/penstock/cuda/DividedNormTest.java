package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A layer norm of columns that several shards divide is that of whole rows. */
class DividedNormTest {
    private static final int ROWS = 5;

    private final Random random = new Random(1);

    @ParameterizedTest(name = "{0}, {1} shards of {2} columns")
    @CsvSource({
        "REFERENCE, 1, 8",
        "REFERENCE, 4, 3",
        "CPU, 2, 16",
        "CPU, 4, 7",
        "CPU, 3, 33",
    })
    void partsGiveTheMomentsAndGradientsOfWholeRows(Kind kind, int shards, int columns) {
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(1))) {
            Kernels kernels = device.kernels();
            DeviceScope memory = device.memory();
            int width = shards * columns;
            Tensor x = filled(memory.tensor("x", DType.F32, ROWS, width), 3); // off centre
            Tensor dy = filled(memory.tensor("dy", DType.F32, ROWS, width), 0);
            Tensor gain = filled(memory.tensor("gain", DType.F32, 1, width), 1);
            Tensor bias = filled(memory.tensor("bias", DType.F32, 1, width), 0);
            Tensor y = memory.tensor("y", DType.F32, ROWS, width);
            Tensor mean = memory.tensor("mean", DType.F32, 1, ROWS);
            Tensor rstd = memory.tensor("rstd", DType.F32, 1, ROWS);
            Tensor dx = memory.tensor("dx", DType.F32, ROWS, width);
            kernels.layerNorm(x, gain, bias, y, mean, rstd, 1e-5);
            kernels.zero(dx);
            kernels.layerNormBackwardInput(dy, x, gain, mean, rstd, dx);
            Tensor parts = memory.tensor("parts", DType.F32, shards, 2 * ROWS);
            Tensor slopes = memory.tensor("slopes", DType.F32, shards, 2 * ROWS);

            for (int k = 0; k < shards; k++) {
                kernels.layerNormPart(x.columns(k * columns, columns), parts.rows(k, 1));
            }
            Tensor own = memory.tensor("own y", DType.F32, ROWS, width);
            Tensor ownMean = memory.tensor("own mean", DType.F32, 1, ROWS);
            Tensor ownRstd = memory.tensor("own rstd", DType.F32, 1, ROWS);
            Tensor ownDx = memory.tensor("own dx", DType.F32, ROWS, width);
            kernels.zero(ownDx);
            for (int k = 0; k < shards; k++) {
                int first = k * columns;
                kernels.layerNormOfParts(
                        parts,
                        x.columns(first, columns),
                        gain.columns(first, columns),
                        bias.columns(first, columns),
                        own.columns(first, columns),
                        ownMean,
                        ownRstd,
                        1e-5);
                kernels.layerNormBackwardPart(
                        dy.columns(first, columns),
                        x.columns(first, columns),
                        gain.columns(first, columns),
                        ownMean,
                        ownRstd,
                        slopes.rows(k, 1));
            }
            for (int k = 0; k < shards; k++) {
                int first = k * columns;
                kernels.layerNormBackwardOfParts(
                        slopes,
                        dy.columns(first, columns),
                        x.columns(first, columns),
                        gain.columns(first, columns),
                        ownMean,
                        ownRstd,
                        ownDx.columns(first, columns));
            }

            assertClose(ownMean, mean);
            assertClose(ownRstd, rstd);
            assertClose(own, y);
            assertClose(ownDx, dx);
        }
    }

    private Tensor filled(Tensor tensor, double middle) {
        for (long i = 0; i < tensor.elements(); i++) {
            tensor.segment()
                    .setAtIndex(
                            ValueLayout.JAVA_FLOAT, i, (float) (middle + random.nextGaussian()));
        }
        return tensor;
    }

    private static void assertClose(Tensor actual, Tensor expected) {
        float[] values = expected.segment().toArray(ValueLayout.JAVA_FLOAT);
        float[] found = actual.segment().toArray(ValueLayout.JAVA_FLOAT);
        for (int i = 0; i < values.length; i++) {
            assertThat(Math.abs(found[i] - values[i]))
                    .isLessThanOrEqualTo(5e-6f * Math.max(1, Math.abs(values[i])));
        }
    }
}
