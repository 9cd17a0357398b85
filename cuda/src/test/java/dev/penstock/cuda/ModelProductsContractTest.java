package dev.penstock.cuda;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Products as deep and as wide as those of GPT-2, whose vocabulary is odd. */
@ParameterizedClass
@MethodSource("multipliers")
class ModelProductsContractTest extends KernelContract {
    /** Emulated threads are slow: a real GPU takes the whole, and other odd numbers do here. */
    private static final int VOCABULARY = EmulatedGpus.areWhole() ? 50_257 : 9_601;

    private static final int TABLE_WIDTH = EmulatedGpus.areWhole() ? 768 : 12;

    /**
     * Tensor cores cut where others round, each time they add 16 products to an F32 sum: always
     * towards zero, by up to one unit in its last place.
     */
    private static final double SUM_OVER_VOCABULARY = VOCABULARY / 16.0 * 0x1p-24;

    static Stream<DeviceSettings> multipliers() {
        return withoutOthers(
                Stream.concat(EmulatedGpus.devices().limit(1), EmulatedGpus.withCublas()));
    }

    ModelProductsContractTest(DeviceSettings settings) {
        super(settings);
    }

    /** All products of the head, with an odd vocabulary on the contiguous side and as the sum. */
    @Test
    void productsOfTheHeadAreRight() {
        int rows = 8;
        int width = TABLE_WIDTH;
        Tensor table = normals(VOCABULARY, width);
        Tensor normed = normals(rows, width);
        Tensor logits = zeros(rows, VOCABULARY);
        Tensor dNormed = zeros(rows, width);
        Tensor dTable = zeros(VOCABULARY, width);

        for (DType multiply : new DType[] {DType.F32, DType.BF16}) {
            kernels.zero(dTable);
            Tensor factor = table;
            if (multiply == DType.BF16) {
                factor = device.memory().tensor("half", DType.BF16, VOCABULARY, width);
                kernels.copy(table, factor);
            }
            kernels.gemm(multiply, false, normed, true, factor, logits, false);
            kernels.gemm(multiply, false, logits, false, factor, dNormed, false);
            kernels.weightGradient(
                    multiply, logits, normed, dTable, new TokenBlocks(1, rows, 0, 128));

            double[][] left = rounded(multiply, values(normed));
            double[][] right = rounded(multiply, values(table));
            double[][] made = Truth.product(left, Truth.transpose(right));
            assertClose(multiply + " logits", logits, made);
            double[][] dLogits = rounded(multiply, values(logits));
            double[][] sum = Truth.product(dLogits, right);
            assertClose(multiply + " dNormed", dNormed, sum, SUM_OVER_VOCABULARY);
            assertClose(
                    multiply + " dTable",
                    dTable,
                    Truth.product(Truth.transpose(dLogits), left),
                    1e-5);
        }
    }

    @Test
    void productsAsDeepAsThoseOfGpt2AreRight() {
        for (DType multiply : new DType[] {DType.F32, DType.BF16}) {
            Tensor x = normals(24, 768);
            Tensor weight = normals(768, 1_031);
            Tensor factor = weight;
            if (multiply == DType.BF16) {
                factor = device.memory().tensor("half", DType.BF16, 768, 1_031);
                kernels.copy(weight, factor);
            }
            Tensor y = zeros(24, 1_031);
            Tensor rows = normals(1_300, 33);
            Tensor dy = normals(1_300, 40);
            Tensor dWeight = normals(33, 40);
            double[][] before = values(dWeight);

            kernels.gemm(multiply, false, x, false, factor, y, false);
            kernels.weightGradient(multiply, rows, dy, dWeight, new TokenBlocks(2, 650, 0, 128));

            double[][] product =
                    Truth.product(rounded(multiply, values(x)), rounded(multiply, values(weight)));
            assertClose(multiply + " y", y, product, 1e-5);
            double[][] sum =
                    Truth.product(
                            Truth.transpose(rounded(multiply, values(rows))),
                            rounded(multiply, values(dy)));
            assertClose(multiply + " dWeight", dWeight, plus(before, sum), 1e-5);
        }
    }

    private static double[][] rounded(DType multiply, double[][] values) {
        return multiply == DType.BF16 ? Truth.roundedToBFloat16(values) : values;
    }
}
