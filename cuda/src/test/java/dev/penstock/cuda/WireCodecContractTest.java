package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.WireCodec;
import dev.penstock.cuda.kernels.HostMatrix;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Codecs of the wire beside recorded results of another program, and their bounds. */
@ParameterizedClass
@MethodSource("devices")
class WireCodecContractTest extends KernelContract {
    WireCodecContractTest(DeviceSettings settings) {
        super(settings);
    }

    // ---- the recorded file ----------------------------------------------------------------------

    private static ByteBuffer recorded(String name) {
        try (InputStream file =
                WireCodecContractTest.class.getResourceAsStream(
                        "/golden-models/codecs.safetensors")) {
            ByteBuffer all =
                    ByteBuffer.wrap(Objects.requireNonNull(file).readAllBytes())
                            .order(ByteOrder.LITTLE_ENDIAN);
            int header = (int) all.getLong(0);
            String text = new String(all.array(), Long.BYTES, header, StandardCharsets.UTF_8);
            Matcher offsets =
                    Pattern.compile(
                                    "\"%s\"[^}]*\"data_offsets\" *: *\\[(\\d+), *(\\d+)\\]"
                                            .formatted(Pattern.quote(name)))
                            .matcher(text);
            assertThat(offsets.find()).as(name).isTrue();
            int from = Integer.parseInt(offsets.group(1));
            int to = Integer.parseInt(offsets.group(2));
            return all.slice(Long.BYTES + header + from, to - from).order(ByteOrder.LITTLE_ENDIAN);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static float[] floats(String name) {
        var of = recorded(name).asFloatBuffer();
        float[] values = new float[of.remaining()];
        of.get(values);
        return values;
    }

    private Tensor matrix(float[] values, int columns) {
        Tensor tensor = zeros(values.length / columns, columns);
        tensor.write(MemorySegment.ofArray(values));
        return tensor;
    }

    private Tensor coded(WireCodec codec, Tensor x) {
        Tensor coded =
                device.memory().tensor("coded", DType.I32, x.rows(), codec.words(x.columns()));
        coded.write(MemorySegment.ofArray(new int[(int) coded.elements()]));
        kernels.encode(codec, x, coded);
        return coded;
    }

    private Tensor back(WireCodec codec, Tensor x) {
        Tensor back = normals(x.rows(), x.columns());
        kernels.decode(codec, coded(codec, x), back);
        return back;
    }

    private static byte[] bytes(Tensor coded, int row) {
        MemorySegment all = coded.contents();
        long rowBytes = 4L * coded.columns();
        return all.asSlice(row * rowBytes, rowBytes).toArray(ValueLayout.JAVA_BYTE);
    }

    private static String codecName(WireCodec codec) {
        return switch (codec) {
            case FP16 -> "activations.fp16";
            case BF16 -> "activations.bf16";
            case INT8 -> "int8_row";
            case INT4 -> "int4_row";
        };
    }

    private static void assertSameBits(Tensor got, float[] expected) {
        HostMatrix rows = HostMatrix.of(got);
        for (int i = 0; i < expected.length; i++) {
            float value = rows.get(i / got.columns(), i % got.columns());
            if (Float.isNaN(expected[i])) {
                assertThat(value).as("element %d", i).isNaN();
            } else {
                assertThat(Float.floatToRawIntBits(value))
                        .as("element %d: %s and %s", i, value, expected[i])
                        .isEqualTo(Float.floatToRawIntBits(expected[i]));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(WireCodec.class)
    void decodedActivationsHaveTheRecordedBits(WireCodec codec) {
        Tensor x = matrix(floats("activations"), 96);

        assertSameBits(back(codec, x), floats(codecName(codec) + ".back"));
    }

    @Test
    void codedRowsHaveTheRecordedBits() {
        Tensor x = matrix(floats("activations"), 96);
        ByteBuffer bytes = recorded("int8_row.values");
        ByteBuffer packed = recorded("int4_row.packed");
        Tensor eight = coded(WireCodec.INT8, x);
        Tensor four = coded(WireCodec.INT4, x);
        for (int row = 0; row < x.rows(); row++) {
            for (int i = 0; i < 96; i++) {
                assertThat(bytes(eight, row)[i]).isEqualTo(bytes.get(96 * row + i));
            }
            for (int i = 0; i < 48; i++) {
                assertThat(bytes(four, row)[i]).isEqualTo(packed.get(48 * row + i));
            }
        }
    }

    @Test
    void bordersOfBothHalfFormatsHaveTheRecordedBits() {
        float[] edges = floats("edges");
        for (int repeat : new int[] {1, 3}) { // whole vectors and what is behind them
            float[] row = new float[edges.length * repeat + 5];
            for (int i = 0; i < row.length; i++) {
                row[i] = edges[i % edges.length];
            }
            for (WireCodec codec : new WireCodec[] {WireCodec.FP16, WireCodec.BF16}) {
                var expected =
                        recorded(codec == WireCodec.FP16 ? "edges.fp16" : "edges.bf16")
                                .asShortBuffer();
                Tensor coded = coded(codec, matrix(row, row.length));
                ByteBuffer got = ByteBuffer.wrap(bytes(coded, 0)).order(ByteOrder.LITTLE_ENDIAN);
                for (int i = 0; i < row.length; i++) {
                    if (!Float.isNaN(row[i])) {
                        assertThat(got.getShort(2 * i))
                                .as("%s of %s", codec, row[i])
                                .isEqualTo(expected.get(i % edges.length));
                    }
                }
                Tensor back = back(codec, matrix(row, row.length));
                HostMatrix decoded = HostMatrix.of(back);
                for (int i = 0; i < row.length; i++) {
                    assertThat(Float.isNaN(decoded.get(0, i))).isEqualTo(Float.isNaN(row[i]));
                }
            }
        }
    }

    // ---- properties -----------------------------------------------------------------------------

    @ParameterizedTest
    @EnumSource(WireCodec.class)
    void errorsAreWithinHalfAStepWhateverTheRow(WireCodec codec) {
        for (int columns : new int[] {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 101}) {
            Tensor x = normalsWithGaps(9, columns);
            Tensor back = back(codec, x);
            HostMatrix before = HostMatrix.of(x);
            HostMatrix after = HostMatrix.of(back);
            for (int i = 0; i < x.rows(); i++) {
                double largest = 0;
                for (float value : before.row(i)) {
                    largest = Math.max(largest, Math.abs(value));
                }
                for (int j = 0; j < columns; j++) {
                    double value = before.get(i, j);
                    double step =
                            switch (codec) {
                                case FP16 -> Math.abs(value) * 0x1p-10 + 0x1p-24;
                                case BF16 -> Math.abs(value) * 0x1p-7;
                                case INT8 -> largest / 127;
                                case INT4 -> largest / 7;
                            };
                    assertThat(Math.abs(after.get(i, j) - value))
                            .as("%s, row of %d, element %d", codec, columns, j)
                            .isLessThanOrEqualTo(step / 2 * 1.0001);
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(WireCodec.class)
    void partsCutBetweenRowsHaveTheBitsOfTheWholeAndNothingElseIsWritten(WireCodec codec) {
        Tensor x = normals(12, 37);
        Tensor whole = coded(codec, x);
        Tensor parts = coded(codec, zeros(12, 37));

        kernels.encode(codec, x.rows(3, 5), parts.rows(3, 5));

        Tensor untouched = coded(codec, zeros(12, 37));
        for (int row = 0; row < 12; row++) {
            boolean coded = row >= 3 && row < 8;
            assertThat(bytes(parts, row)).isEqualTo(bytes(coded ? whole : untouched, row));
        }
    }

    @ParameterizedTest
    @EnumSource(WireCodec.class)
    void whatIsNotFiniteStaysSo(WireCodec codec) {
        for (float bad : new float[] {Float.NaN, Float.POSITIVE_INFINITY}) {
            for (int column : new int[] {0, 20, 36}) {
                Tensor x = normals(3, 37);
                HostMatrix.of(x).set(1, column, bad);

                assertThat(kernels.allFinite(back(codec, x))).isFalse();
            }
        }
    }

    @Test
    void aCodedTensorOfAnotherShapeIsRefused() {
        Tensor x = normals(3, 8);
        Tensor coded = device.memory().tensor("coded", DType.I32, 3, 2);

        assertThatThrownBy(() -> kernels.encode(WireCodec.INT8, x, coded))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("encode: expected coded I32 [3, 3], got I32 [3, 2]");
    }
}
