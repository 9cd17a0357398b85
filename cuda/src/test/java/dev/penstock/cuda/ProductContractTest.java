package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

@ParameterizedClass
@MethodSource("multipliers")
class ProductContractTest extends KernelContract {
    private static final int[][] SHAPES = {
        {1, 1, 1},
        {2, 3, 1},
        {7, 5, 3},
        {16, 48, 300},
        {33, 65, 17},
        {100, 130, 64},
        {13, 800, 9},
        {200, 40, 20},
        {64, 300, 33},
        {1, 70, 300},
        {96, 1, 12}
    };

    static Stream<DeviceSettings> multipliers() {
        return Stream.concat(devices(), EmulatedGpus.withCublas());
    }

    ProductContractTest(DeviceSettings settings) {
        super(settings);
    }

    @Test
    void productsOfAllShapesAndTranspositionsAreRight() {
        for (int[] s : SHAPES) {
            for (int variant = 0; variant < 8; variant++) {
                productIsRight(
                        s[0], s[1], s[2], (variant & 1) != 0, (variant & 2) != 0, variant >= 4);
            }
        }
    }

    private void productIsRight(
            int m, int n, int k, boolean transposeA, boolean transposeB, boolean accumulate) {
        Tensor a = transposeA ? normals(k, m) : normalsWithGaps(m, k);
        Tensor b = transposeB ? normalsWithGaps(n, k) : normals(k, n);
        Tensor c = accumulate ? normalsWithGaps(m, n) : normals(m, n);
        double[][] before = values(c);
        double[][] left = transposeA ? Truth.transpose(values(a)) : values(a);
        double[][] right = transposeB ? Truth.transpose(values(b)) : values(b);
        double[][] product = Truth.product(left, right);
        double[][] truth = accumulate ? plus(before, product) : product;

        kernels.gemm(DType.F32, transposeA, a, transposeB, b, c, accumulate);

        assertClose("%d x %d x %d".formatted(m, n, k), c, truth, TOLERANCE);
    }

    @Test
    void columnsBesideTheResultStayAsTheyAre() {
        Tensor wide = normals(40, 60);
        double[][] before = values(wide);

        kernels.gemm(
                DType.F32,
                false,
                normals(40, 8),
                false,
                normals(8, 37),
                wide.columns(11, 37),
                false);

        double[][] after = values(wide);
        for (int i = 0; i < 40; i++) {
            for (int j : new int[] {0, 10, 48, 59}) {
                assertThat(after[i][j]).isEqualTo(before[i][j]);
            }
        }
    }

    /** Without accumulation, the result's old contents do not matter. */
    @Test
    void productsOverwriteWhatIsNoNumber() {
        Tensor c = zeros(5, 6);
        HostMatrix.of(c).set(2, 3, Float.NaN);

        kernels.gemm(DType.F32, false, normals(5, 4), false, normals(4, 6), c, false);

        assertThat(kernels.allFinite(c)).isTrue();
    }

    @Test
    void productsOfNarrowFactorsRoundThemAndSumInFloat() {
        for (int[] s : new int[][] {{7, 5, 3}, {33, 65, 17}, {64, 96, 300}, {128, 40, 64}}) {
            for (int variant = 0; variant < 8; variant++) {
                for (DType type : narrowTypes()) {
                    narrowProductIsRight(
                            type, s, (variant & 1) != 0, (variant & 2) != 0, variant >= 4);
                }
            }
        }
    }

    /** GPUs do not multiply halves. */
    private List<DType> narrowTypes() {
        return kernels.writesBFloat16() ? List.of(DType.BF16) : List.of(DType.BF16, DType.F16);
    }

    private static double[][] rounded(DType type, double[][] a) {
        return switch (type) {
            case BF16 -> Truth.roundedToBFloat16(a);
            case F16 -> Truth.roundedToHalf(a);
            case F32, I32, I8, I64, DYNAMIC8, DYNAMIC8_POSITIVE -> a;
        };
    }

    private void narrowProductIsRight(
            DType type, int[] size, boolean transposeA, boolean transposeB, boolean accumulate) {
        int m = size[0];
        int n = size[1];
        int k = size[2];
        Tensor a = transposeA ? normals(k, m) : normalsWithGaps(m, k);
        Tensor floats = transposeB ? normals(n, k) : normals(k, n);
        Tensor b = device.memory().tensor("b", type, floats.rows(), floats.columns());
        kernels.copy(floats, b);
        Tensor c = normals(m, n);
        double[][] before = values(c);
        double[][] left = rounded(type, values(a));
        double[][] right = rounded(type, values(floats));
        double[][] product =
                Truth.product(
                        transposeA ? Truth.transpose(left) : left,
                        transposeB ? Truth.transpose(right) : right);
        double[][] truth = accumulate ? plus(before, product) : product;

        kernels.gemm(type, transposeA, a, transposeB, b, c, accumulate);

        assertClose(type + " %d x %d x %d".formatted(m, n, k), c, truth, TOLERANCE);
    }

    @Test
    void weightGradientsAddUpOverAllRows() {
        List<DType> types = new ArrayList<>(narrowTypes());
        types.add(DType.F32);
        for (DType multiply : types) {
            TokenBlocks blocks = new TokenBlocks(3, 21, 6, 8);
            Tensor x = normals(63, 37);
            Tensor dy = normals(63, 19);
            Tensor dWeight = normals(37, 19);
            double[][] left = rounded(multiply, values(x));
            double[][] right = rounded(multiply, values(dy));
            double[][] product = Truth.product(Truth.transpose(left), right);
            double[][] truth = plus(values(dWeight), product);

            kernels.weightGradient(multiply, x, dy, dWeight, blocks);

            assertClose(multiply + " dWeight", dWeight, truth);
        }
    }

    @Test
    void wrongShapesAreNamed() {
        assertThatThrownBy(
                        () ->
                                kernels.gemm(
                                        DType.F32,
                                        false,
                                        zeros(4, 5),
                                        false,
                                        zeros(6, 7),
                                        zeros(4, 7),
                                        false))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("gemm: expected b F32 [5, 7], got F32 [6, 7] of 't1'");
        assertThatThrownBy(
                        () ->
                                kernels.gemm(
                                        DType.F32,
                                        false,
                                        zeros(4, 5),
                                        false,
                                        zeros(5, 7),
                                        zeros(4, 8),
                                        false))
                .hasMessageContaining("gemm: expected c F32 [4, 7], got F32 [4, 8]");
        assertThatThrownBy(
                        () ->
                                kernels.weightGradient(
                                        DType.F32,
                                        zeros(5, 2),
                                        zeros(6, 2),
                                        zeros(2, 2),
                                        new TokenBlocks(1, 6, 0, 6)))
                .hasMessageContaining("weightGradient: expected x with 6 rows");
    }
}
