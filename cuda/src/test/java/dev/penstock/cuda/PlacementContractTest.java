package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.FixedPoint;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.kernels.HostMatrix;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A GPU loads and stores four elements at a time where it can, and cannot where a tensor begins
 * elsewhere: results are the same to the last bit.
 */
@ParameterizedClass
@MethodSource("gpus")
class PlacementContractTest extends KernelContract {
    private static final int ROWS = 6;
    private static final int HEAD_WIDTH = 8;
    private static final TokenBlocks BLOCKS = new TokenBlocks(2, 3, 0, 2);
    private static final AdamWStep STEP = new AdamWStep(3, 1e-3, 0.9, 0.95, 1e-8, 0.1, 0.5);

    /** Tensors are moved all, or the first of every so many, or the second, .. */
    private static final int EVERY = 5;

    private static final int ALL = -1;

    /** Elements before the first of a tensor that is moved, and beyond its rows. */
    private int lead;

    private int gap;
    private int moved = ALL;
    private int made;
    private Random numbers = new Random(1);
    private final List<double[][]> results = new ArrayList<>();

    static Stream<DeviceSettings> gpus() {
        return Stream.concat(EmulatedGpus.devices().limit(1), EmulatedGpus.withCublas());
    }

    PlacementContractTest(DeviceSettings settings) {
        super(settings);
    }

    private Tensor empty(DType type, int rows, int columns) {
        boolean isMoved = moved == ALL || made++ % EVERY == moved;
        int stride = rows == 1 ? columns : (columns + 3) / 4 * 4 + (isMoved ? gap : 0);
        long offset = isMoved ? (long) lead * type.bytes() : 0;
        long bytes = offset + (long) rows * stride * type.bytes();
        return new Tensor(
                device.memory().allocate("t", bytes), offset, type, rows, columns, stride);
    }

    private Tensor floats(int rows, int columns) {
        Tensor tensor = empty(DType.F32, rows, columns);
        float[] row = new float[columns];
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                row[j] = (float) numbers.nextGaussian();
            }
            HostMatrix.of(tensor).setRow(i, row);
        }
        return tensor;
    }

    private Tensor words(int rows, int columns, int limit) {
        int[] words = numbers.ints((long) rows * columns, 0, limit).toArray();
        Tensor tensor = device.memory().tensor("w", DType.I32, rows, columns);
        tensor.writeIndices(MemorySegment.ofArray(words));
        return tensor;
    }

    private void keep(Tensor... tensors) {
        for (Tensor tensor : tensors) {
            results.add(values(tensor));
        }
    }

    @ParameterizedTest
    @CsvSource({"64, 1, 0", "64, 2, 4", "64, 0, 1", "61, 1, 0", "61, 3, 2", "3, 1, 1"})
    void resultsDoNotDependOnWhereTensorsBegin(int columns, int shift, int more) {
        List<double[][]> here = resultsOf(columns, 0, 0, ALL);

        assertSame(resultsOf(columns, shift, more, ALL), here);
    }

    /** Of a kernel's tensors one is elsewhere: it is enough for none to be taken by fours. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4})
    void resultsDoNotDependOnWhereOneTensorBegins(int which) {
        List<double[][]> here = resultsOf(12, 0, 0, ALL);

        assertSame(resultsOf(12, 1, 0, which), here);
    }

    private static void assertSame(List<double[][]> elsewhere, List<double[][]> here) {
        assertThat(elsewhere).hasSameSizeAs(here);
        for (int i = 0; i < here.size(); i++) {
            assertThat(elsewhere.get(i)).as("result %s", i).isDeepEqualTo(here.get(i));
        }
    }

    private List<double[][]> resultsOf(int columns, int shift, int more, int which) {
        lead = shift;
        gap = more;
        moved = which;
        made = 0;
        numbers = new Random(20);
        results.clear();
        sums(columns);
        activations(columns);
        copies(columns);
        tables(columns);
        wholeTensors(ROWS * columns);
        return List.copyOf(results);
    }

    private void sums(int columns) {
        Tensor x = floats(ROWS, columns);
        Tensor y = floats(ROWS, columns);
        Tensor bias = floats(1, columns);
        Tensor rounded = empty(DType.BF16, ROWS, columns);
        kernels.addBiasRounded(y, bias, rounded);
        kernels.addBias(y, bias);
        keep(y, rounded);
        kernels.addBiasAndResidual(y, bias, x);
        kernels.add(x, y);
        kernels.blend(0.3f, x, 0.7f, y);
        kernels.subtract(x, y);
        keep(y);
        Tensor dBias = floats(1, columns);
        kernels.biasGradient(y, dBias, BLOCKS);
        if (kernels.joinsProducts()) {
            kernels.biasGradient(rounded, dBias, BLOCKS);
        }
        kernels.biasGradientRounded(y, dBias, BLOCKS, rounded);
        keep(dBias, rounded);
    }

    private void activations(int columns) {
        Tensor bias = floats(1, columns);
        for (Gelu form : Gelu.values()) {
            Tensor pre = floats(ROWS, columns);
            Tensor rounded = empty(DType.BF16, ROWS, columns);
            Tensor dBias = floats(1, columns);
            kernels.geluRounded(pre, bias, rounded, form);
            keep(rounded);
            kernels.geluBackwardRounded(
                    pre, bias, floats(ROWS, columns), form, rounded, dBias, BLOCKS);
            keep(rounded, dBias);
            Tensor y = empty(DType.F32, ROWS, columns);
            kernels.biasGelu(pre, bias, y, form);
            keep(pre, y);
            kernels.geluBackward(pre, y, form);
            keep(y);
        }
        Tensor gated = floats(ROWS, 2 * columns);
        Tensor z = empty(DType.F32, ROWS, columns);
        Tensor rounded = empty(DType.BF16, ROWS, columns);
        Tensor dRounded = empty(DType.BF16, ROWS, 2 * columns);
        kernels.swiGlu(gated, z);
        kernels.swiGlu(gated, rounded);
        kernels.swiGluBackward(gated, z, dRounded);
        kernels.swiGluBackward(gated, z, gated);
        keep(z, rounded, dRounded, gated);
        Tensor x = floats(ROWS, 3 * HEAD_WIDTH);
        kernels.rotate(x, floats(ROWS / 2, HEAD_WIDTH), false);
        keep(x);
    }

    private void copies(int columns) {
        Tensor x = floats(ROWS, columns);
        Tensor y = empty(DType.F32, ROWS, columns);
        Tensor halves = empty(DType.BF16, ROWS, columns);
        Tensor others = empty(DType.BF16, ROWS, columns);
        kernels.copy(x, y);
        kernels.copy(y, halves);
        kernels.copy(halves, others);
        kernels.copy(others, x);
        keep(x, y, halves, others);
        Tensor keys = words(ROWS, 2, Integer.MAX_VALUE);
        DropoutMask mask = new DropoutMask(5, 7, 0.3, 1 / 0.7f);
        kernels.dropout(x, keys, mask, y, true);
        kernels.dropout(halves, keys, mask, others, false);
        keep(y, others);
    }

    private void tables(int columns) {
        int rows = 4;
        Tensor table = floats(rows, columns);
        Tensor tokens = words(1, ROWS, rows);
        Tensor y = empty(DType.F32, ROWS, columns);
        kernels.embedding(tokens, TokenRange.all(rows), table, y);
        kernels.embeddingBackward(y, tokens, TokenRange.all(rows), table, BLOCKS);
        keep(y, table);
    }

    private void wholeTensors(int elements) {
        Tensor gradient = floats(1, elements);
        Tensor sum = empty(DType.I64, 1, elements);
        kernels.foldGradient(gradient, sum, FixedPoint.limit(4), false);
        keep(gradient);
        gradient = floats(1, elements);
        kernels.foldGradient(gradient, sum, FixedPoint.limit(4), true);
        kernels.unfoldGradient(sum, gradient);
        keep(gradient);
        Tensor weight = floats(1, elements);
        Tensor m = floats(1, elements);
        Tensor v = floats(1, elements);
        kernels.foldGradient(v, sum, FixedPoint.limit(4), false); // squares are not negative
        Tensor rounded = empty(DType.BF16, 1, elements);
        kernels.adamW(List.of(new AdamWParameter(weight, gradient, m, v, rounded, true)), STEP);
        keep(weight, gradient, m, v, rounded);
        gradient = floats(1, elements);
        kernels.adamW(weight, gradient, m, v, STEP);
        keep(weight, gradient, m, v);
    }

    /** In every place of a row whose first elements are looked at together, and of its tail. */
    @ParameterizedTest
    @CsvSource({"0, 0", "1, 0", "0, 1"})
    void aNumberThatIsNotFiniteIsFoundInEveryPlace(int shift, int more) {
        lead = shift;
        gap = more;
        int columns = 11;
        for (int j = 0; j < columns; j++) {
            Tensor x = floats(2, columns);
            kernels.watchFinite(x);
            kernels.watchFiniteLater(x);
            assertThat(kernels.firstNotFinite()).isEqualTo(-1);
            HostMatrix.of(x).set(1, j, j % 2 == 0 ? Float.NaN : Float.NEGATIVE_INFINITY);
            Tensor halves = empty(DType.BF16, 2, columns);
            kernels.copy(x, halves);
            for (Tensor each : List.of(x, halves)) {
                assertThat(kernels.allFinite(each)).as("column %s", j).isFalse();
                kernels.watchFiniteLater(each);
                assertThat(kernels.firstNotFinite()).as("column %s later", j).isZero();
            }
        }
    }
}
