package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.BFloat16;
import dev.penstock.cuda.kernels.HostMatrix;
import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** What dropout keeps is decided by row, site and column; the truth is computed by big integers. */
@ParameterizedClass
@MethodSource("devices")
class DropoutContractTest extends KernelContract {
    private static final BigInteger ALL_BITS = BigInteger.TWO.pow(64);
    private static final int ROWS = 12;
    private static final int COLUMNS = 45;
    private static final long SITE = 0xFEDC_BA98_7654_3210L;

    private final long[] keys = random.longs(ROWS).toArray();

    DropoutContractTest(DeviceSettings settings) {
        super(settings);
    }

    private Tensor keys() {
        int[] words = new int[2 * ROWS];
        for (int i = 0; i < ROWS; i++) {
            words[2 * i] = (int) keys[i];
            words[2 * i + 1] = (int) (keys[i] >>> 32);
        }
        Tensor tensor = device.memory().tensor("keys", DType.I32, ROWS, 2);
        tensor.write(MemorySegment.ofArray(words));
        return tensor;
    }

    /** SplitMix64 (Steele, Lea, Flood 2014) of a counter. */
    private static boolean keeps(long key, long site, int column, double p) {
        BigInteger counter = unsigned(0x9E3779B97F4A7C15L).multiply(BigInteger.valueOf(column + 1));
        BigInteger z = unsigned(key ^ site).add(counter).mod(ALL_BITS);
        z = z.xor(z.shiftRight(30)).multiply(unsigned(0xBF58476D1CE4E5B9L)).mod(ALL_BITS);
        z = z.xor(z.shiftRight(27)).multiply(unsigned(0x94D049BB133111EBL)).mod(ALL_BITS);
        z = z.xor(z.shiftRight(31));
        return z.shiftRight(32).doubleValue() >= p * 0x1p32;
    }

    private static BigInteger unsigned(long bits) {
        return new BigInteger(Long.toUnsignedString(bits));
    }

    private double[][] dropped(double[][] x, int firstColumn, double p) {
        double[][] y = new double[x.length][x[0].length];
        for (int i = 0; i < x.length; i++) {
            for (int j = 0; j < x[i].length; j++) {
                y[i][j] = keeps(keys[i], SITE, firstColumn + j, p) ? x[i][j] / (1 - p) : 0;
            }
        }
        return y;
    }

    @Test
    void keepsWhatItsFormulaSays() {
        for (double p : new double[] {0.1, 0.5, 0.9}) {
            Tensor x = normalsWithGaps(ROWS, COLUMNS);
            Tensor y = normalsWithGaps(ROWS, COLUMNS);
            double[][] truth = dropped(values(x), 3, p);

            kernels.dropout(x, keys(), DropoutMask.scaled(SITE, 3, p), y, false);

            assertClose("y", y, truth, 1e-6);
        }
    }

    @Test
    void addsToWhatIsThereAndWorksInPlace() {
        Tensor x = normals(ROWS, COLUMNS);
        Tensor y = normals(ROWS, COLUMNS);
        double[][] truth = dropped(values(x), 0, 0.25);
        double[][] sum = plus(values(y), truth);
        var mask = DropoutMask.scaled(SITE, 0, 0.25);

        kernels.dropout(x, keys(), mask, y, true);
        kernels.dropout(x, keys(), mask, x, false);

        assertClose("sum", y, sum, 1e-6);
        assertClose("in place", x, truth, 1e-6);
    }

    @Test
    void probabilityZeroIsTheSameBits() {
        Tensor x = normals(ROWS, COLUMNS);
        Tensor y = zeros(ROWS, COLUMNS);

        kernels.dropout(x, keys(), DropoutMask.scaled(SITE, 0, 0), y, false);

        assertThat(values(y)).isDeepEqualTo(values(x));
    }

    @Test
    void partsHaveTheBitsOfTheWhole() {
        Tensor x = normals(ROWS, COLUMNS);
        Tensor whole = zeros(ROWS, COLUMNS);
        Tensor parts = zeros(ROWS, COLUMNS);

        kernels.dropout(x, keys(), DropoutMask.scaled(SITE, 0, 0.3), whole, false);
        for (int row = 0; row < ROWS; row += 4) {
            for (int column = 0; column < COLUMNS; column += 15) {
                kernels.dropout(
                        x.rows(row, 4).columns(column, 15),
                        keys().rows(row, 4),
                        DropoutMask.scaled(SITE, column, 0.3),
                        parts.rows(row, 4).columns(column, 15),
                        false);
            }
        }

        assertThat(values(parts)).isDeepEqualTo(values(whole));
    }

    @Test
    void halvesAreRoundedOnce() {
        if (!kernels.writesBFloat16()) {
            return; // no such op there
        }
        Tensor x = device.memory().tensor("x", DType.BF16, ROWS, COLUMNS);
        kernels.copy(normals(ROWS, COLUMNS), x);
        Tensor y = device.memory().tensor("y", DType.BF16, ROWS, COLUMNS);
        var mask = DropoutMask.scaled(SITE, 0, 0.3);

        kernels.dropout(x, keys(), mask, y, false);

        HostMatrix before = HostMatrix.of(x);
        HostMatrix after = HostMatrix.of(y);
        for (int i = 0; i < ROWS; i++) {
            for (int j = 0; j < COLUMNS; j++) {
                float kept = keeps(keys[i], SITE, j, 0.3) ? before.get(i, j) * mask.scale() : 0;
                assertThat(after.get(i, j)).isEqualTo(BFloat16.toFloat(BFloat16.fromFloat(kept)));
            }
        }
    }

    /** Within four standard deviations, for keys, sites and columns that are small numbers. */
    @Test
    void shareOfKeptElementsIsThatOfIndependentDraws() {
        int rows = 500;
        int columns = 300;
        double p = 0.3;
        double kept = 0;
        double beside = 0;
        double below = 0;
        double elsewhere = 0;
        for (int row = 0; row < rows; row++) {
            for (int column = 0; column < columns; column++) {
                if (kept(row, 1, column, p)) {
                    kept++;
                    beside += kept(row, 1, column + 1, p) ? 1 : 0;
                    below += kept(row + 1, 1, column, p) ? 1 : 0;
                    elsewhere += kept(row, 2, column, p) ? 1 : 0;
                }
            }
        }
        double count = (double) rows * columns;
        double deviation = 4 * Math.sqrt(p * (1 - p) / count);
        assertThat(kept / count).isCloseTo(1 - p, within(deviation));
        for (double both : new double[] {beside, below, elsewhere}) {
            assertThat(both / kept).isCloseTo(1 - p, within(1.3 * deviation));
        }
    }

    /** Keys and sites are themselves mixed, as the runtime's are. */
    private static boolean kept(int row, int site, int column, double p) {
        var mask = DropoutMask.scaled(DropoutMask.mix(site << 20), 0, p);
        return mask.keeps(DropoutMask.mix(row + 1), column);
    }

    @Test
    void wrongShapesAreNamed() {
        var mask = DropoutMask.scaled(SITE, 0, 0.5);
        assertThatThrownBy(() -> kernels.dropout(zeros(3, 4), keys(), mask, zeros(3, 4), false))
                .hasMessageContaining("dropout: expected rowKeys I32 [3, 2], got I32 [12, 2]");
        assertThatThrownBy(() -> DropoutMask.scaled(SITE, 0, 1))
                .hasMessageContaining("expected a probability in [0, 1)");
    }
}
