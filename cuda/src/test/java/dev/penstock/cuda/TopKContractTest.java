package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TopK;
import dev.penstock.cuda.kernels.HostMatrix;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The largest elements of rows beside a plain search, element by element, and their bounds. */
@ParameterizedClass
@MethodSource("devices")
class TopKContractTest extends KernelContract {
    private static final int[] WIDTHS = {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 101, 259};

    TopKContractTest(DeviceSettings settings) {
        super(settings);
    }

    private Tensor matrix(float[]... rows) {
        Tensor tensor = zeros(rows.length, rows[0].length);
        HostMatrix matrix = HostMatrix.of(tensor);
        for (int i = 0; i < rows.length; i++) {
            matrix.setRow(i, rows[i]);
        }
        return tensor;
    }

    private Tensor coded(TopK codec, Tensor x) {
        int[] left = new int[x.rows() * codec.words(x.columns())];
        Arrays.fill(left, -1); // of what was there before
        Tensor coded = words(left, codec.words(x.columns()));
        kernels.encode(codec, x, coded);
        return coded;
    }

    private Tensor words(int[] words, int columns) {
        Tensor tensor = device.memory().tensor("coded", DType.I32, words.length / columns, columns);
        tensor.write(MemorySegment.ofArray(words));
        return tensor;
    }

    private Tensor back(TopK codec, Tensor x) {
        Tensor back = normals(x.rows(), x.columns());
        kernels.decode(codec, coded(codec, x), back);
        return back;
    }

    // ---- a plain search -------------------------------------------------------------------------

    /** Takes the largest that is left, from the left, as often as elements travel. */
    private static boolean[] largest(float[] row, int kept) {
        boolean[] taken = new boolean[row.length];
        for (int k = 0; k < kept; k++) {
            int best = -1;
            for (int j = 0; j < row.length; j++) {
                if (!taken[j] && (best < 0 || isLarger(row[j], row[best]))) {
                    best = j;
                }
            }
            taken[best] = true;
        }
        return taken;
    }

    private static boolean isLarger(float value, float other) {
        return Float.isNaN(value)
                ? !Float.isNaN(other)
                : !Float.isNaN(other) && Math.abs(value) > Math.abs(other);
    }

    /** Its words by the layout that {@link TopK} draws, without looking at the code. */
    private static int[] expected(float[] row, int kept, boolean bitmap) {
        boolean[] taken = largest(row, kept);
        float most = 0;
        for (float value : row) {
            most =
                    Float.isNaN(value) || Float.isNaN(most)
                            ? Float.NaN
                            : Math.max(most, Math.abs(value));
        }
        float scale = 1;
        if (Float.isFinite(most)) {
            int exponent = most == 0 ? -126 : Math.max(Math.getExponent(most), -126);
            scale = (float) Math.pow(2, Math.min(exponent, 126));
        }
        int marks = bitmap ? (row.length + 31) / 32 : 0;
        int elements = ((bitmap ? kept : 2 * kept) + 1) / 2;
        int[] words = new int[elements + marks + 1];
        int at = 0;
        for (int j = 0; j < row.length; j++) {
            if (taken[j]) {
                put(words, at, Float.floatToFloat16((float) ((double) row[j] / scale)));
                if (bitmap) {
                    words[elements + j / 32] |= 1 << (j % 32);
                } else {
                    put(words, kept + at, j);
                }
                at++;
            }
        }
        words[words.length - 1] = Float.floatToRawIntBits(scale);
        return words;
    }

    private static void put(int[] words, int half, int bits) {
        words[half / 2] |= (bits & 0xffff) << (half % 2 * 16);
    }

    private static float[] hardRow(int kind, int columns) {
        float[] row = new float[columns];
        for (int j = 0; j < columns; j++) {
            int mixed = (j * 37 + kind * 11) % 29 - 14;
            row[j] =
                    switch (kind) {
                        case 0 -> 0;
                        case 1 -> j % 2 == 0 ? -0.0f : 0.0f;
                        case 2 -> mixed % 3; // full of ties
                        case 3 -> mixed * Float.MIN_VALUE;
                        case 4 -> mixed * 1e37f;
                        case 5 -> j == columns / 2 ? -3e38f : mixed * 1e-3f; // one outlier
                        case 6 -> j == columns - 1 ? 1e-30f : 0;
                        case 7 -> mixed * 1e-12f; // gradients
                        default -> (float) Math.exp(mixed) * (j % 2 == 0 ? 1 : -1);
                    };
        }
        return row;
    }

    private void assertAsExpected(TopK codec, float[]... rows) {
        int columns = rows[0].length;
        HostMatrix got = HostMatrix.of(coded(codec, matrix(rows)));
        for (int i = 0; i < rows.length; i++) {
            int[] words = expected(rows[i], codec.kept(columns), codec.hasBitmap(columns));
            assertThat(words).hasSize(codec.words(columns));
            for (int j = 0; j < words.length; j++) {
                assertThat(got.getInt(i, j))
                        .as("%s of %d columns, row %d, word %d", codec, columns, i, j)
                        .isEqualTo(words[j]);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.01, 0.05, 0.1, 0.5, 1})
    void codedRowsAreThoseOfAPlainSearch(double share) {
        for (int columns : WIDTHS) {
            float[][] rows = new float[14][];
            for (int i = 0; i < rows.length; i++) {
                rows[i] = i < 9 ? hardRow(i, columns) : HostMatrix.of(normals(1, columns)).row(0);
            }
            assertAsExpected(new TopK(share), rows);
        }
    }

    @Test
    void wideRowsAreThoseOfAPlainSearch() {
        for (int columns : new int[] {768, 70_000}) { // more than 16 bits can number
            TopK codec = new TopK(0.0005);
            assertThat(codec.hasBitmap(columns)).isEqualTo(columns > 65_536);

            assertAsExpected(codec, HostMatrix.of(normals(1, columns)).row(0), hardRow(2, columns));
        }
    }

    // ---- sizes ----------------------------------------------------------------------------------

    @ParameterizedTest
    @CsvSource({
        "0.1, 768, 77, true, 64", // 39 of values, 24 of marks and a scale
        "0.05, 768, 39, false, 40",
        "0.1, 30, 3, false, 4",
        "0.1, 70, 7, false, 8",
        "0.001, 16, 1, false, 2",
        "1, 5, 5, true, 5"
    })
    void whatIsShorterSaysWhichElementsTravel(
            double share, int columns, int kept, boolean bitmap, int words) {
        TopK codec = new TopK(share);

        assertThat(codec.kept(columns)).isEqualTo(kept);
        assertThat(codec.hasBitmap(columns)).isEqualTo(bitmap);
        assertThat(codec.words(columns)).isEqualTo(words);
    }

    // ---- properties -----------------------------------------------------------------------------

    @ParameterizedTest
    @ValueSource(doubles = {0.03, 0.1, 0.4, 1})
    void whatTravelsIsRoundedAndWhatIsLostIsNoLarger(double share) {
        TopK codec = new TopK(share);
        for (int columns : WIDTHS) {
            Tensor x = normalsWithGaps(9, columns);
            HostMatrix before = HostMatrix.of(x);
            HostMatrix after = HostMatrix.of(back(codec, x));
            for (int i = 0; i < x.rows(); i++) {
                float[] row = before.row(i);
                double squares = 0;
                double lost = 0;
                double least = Double.MAX_VALUE;
                boolean[] taken = largest(row, codec.kept(columns));
                for (int j = 0; j < columns; j++) {
                    double value = row[j];
                    double got = after.get(i, j);
                    squares += value * value;
                    lost += (value - got) * (value - got);
                    if (taken[j]) {
                        least = Math.min(least, Math.abs(value));
                        assertThat(got).isCloseTo(value, within(Math.abs(value) * 0x1p-11 + 1e-6));
                    } else {
                        assertThat(got).isZero();
                    }
                }
                for (int j = 0; j < columns; j++) {
                    assertThat(taken[j] || Math.abs(row[j]) <= least).isTrue();
                }
                double bound = 1 - (double) codec.kept(columns) / columns;
                assertThat(lost).isLessThanOrEqualTo(squares * (bound + 0x1p-20));
            }
        }
    }

    @Test
    void partsCutBetweenRowsHaveTheBitsOfTheWholeAndNothingElseIsWritten() {
        TopK codec = new TopK(0.1);
        Tensor x = normals(12, 37);
        HostMatrix whole = HostMatrix.of(coded(codec, x));
        Tensor coded = coded(codec, zeros(12, 37));
        HostMatrix untouched = HostMatrix.of(coded(codec, zeros(12, 37)));

        kernels.encode(codec, x.rows(3, 5), coded.rows(3, 5));

        HostMatrix parts = HostMatrix.of(coded);
        for (int row = 0; row < 12; row++) {
            HostMatrix same = row >= 3 && row < 8 ? whole : untouched;
            for (int j = 0; j < codec.words(37); j++) {
                assertThat(parts.getInt(row, j)).isEqualTo(same.getInt(row, j));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.02, 0.5})
    void whatIsNotFiniteStaysSo(double share) {
        for (float bad : new float[] {Float.NaN, Float.NEGATIVE_INFINITY}) {
            for (int column : new int[] {0, 20, 36}) {
                Tensor x = normals(3, 37);
                HostMatrix.of(x).set(1, column, bad);

                assertThat(kernels.allFinite(back(new TopK(share), x))).isFalse();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.05, 0.5})
    void wordsThatNobodyWroteLeaveTheRestOfTheMemoryAlone(double share) {
        TopK codec = new TopK(share);
        int columns = 37;
        int[] words = new int[3 * codec.words(columns)];
        Arrays.fill(words, -1);
        Tensor x = normals(5, columns);
        float[] first = HostMatrix.of(x).row(0);
        float[] last = HostMatrix.of(x).row(4);

        kernels.decode(codec, words(words, codec.words(columns)), x.rows(1, 3));

        assertThat(HostMatrix.of(x).row(0)).isEqualTo(first);
        assertThat(HostMatrix.of(x).row(4)).isEqualTo(last);
    }

    @Test
    void aCodedTensorOfAnotherShapeIsRefused() {
        Tensor x = normals(3, 100);

        assertThatThrownBy(() -> kernels.encode(new TopK(0.1), x, words(new int[9], 3)))
                .hasMessageContaining("encode: expected coded I32 [3, 10], got I32 [3, 3]");
        assertThatThrownBy(() -> new TopK(0)).hasMessage("expected a share in (0, 1], got 0.0");
    }
}
