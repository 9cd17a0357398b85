package dev.penstock.runtime.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class TensorSourceTest {
    private static final int ALL = 1 << 16;

    @TempDir Path folder;

    /** The value of every number of 16 bits, by the definition of its format. */
    @Test
    void everyHalfPrecisionValueIsReadExactly() {
        for (StoredType type : List.of(StoredType.F16, StoredType.BF16)) {
            float[] read = everyHalf(type).toFloats();

            for (int bits = 0; bits < ALL; bits++) {
                double exact = valueOf(type, bits);
                if (Double.isNaN(exact)) {
                    assertThat(read[bits]).isNaN();
                } else {
                    assertThat(Float.floatToRawIntBits(read[bits]))
                            .as("%s %04x", type, bits)
                            .isEqualTo(Float.floatToRawIntBits((float) exact));
                    assertThat((double) read[bits]).isEqualTo(exact);
                }
            }
        }
    }

    @Test
    void everyHalfPrecisionValueComesBackFromFloats() {
        for (StoredType type : List.of(StoredType.F16, StoredType.BF16)) {
            StoredTensor half = everyHalf(type);

            StoredTensor back = written("back", half.as(StoredType.F32).as(type));

            for (int bits = 0; bits < ALL; bits++) {
                if (!Double.isNaN(valueOf(type, bits))) {
                    assertThat(halfAt(back, bits)).isEqualTo(bits);
                }
            }
        }
    }

    /** Of the two neighbours the nearer, and of two equally near the even one. */
    @Test
    void floatsAreRoundedToTheNearestOrTheEven() {
        Random random = new Random(11);
        for (StoredType type : List.of(StoredType.F16, StoredType.BF16)) {
            int largest = type == StoredType.F16 ? 0x7bff : 0x7f7f;
            float[] values = new float[20_000];
            int[] expected = new int[values.length];
            for (int i = 0; i < values.length; i++) {
                int low = random.nextInt(largest);
                double below = valueOf(type, low);
                double above = valueOf(type, low + 1);
                double middle = (below + above) / 2;
                double value = i % 3 == 0 ? middle : below + (above - below) * random.nextDouble();
                values[i] = (float) value;
                int nearest =
                        Math.abs(values[i] - below) < Math.abs(values[i] - above) ? low : low + 1;
                boolean tie = values[i] - below == above - values[i];
                expected[i] = tie ? low + (low & 1) : nearest;
            }

            StoredTensor half =
                    written(
                            "x",
                            StoredTensor.ofFloats("x", List.of(values.length), values).as(type));

            for (int i = 0; i < values.length; i++) {
                assertThat(halfAt(half, i)).as("%s of %s", type, values[i]).isEqualTo(expected[i]);
            }
        }
    }

    /** More pieces than there are buffers, which nobody would give back. */
    @Test
    @Timeout(60)
    void memoryThatTheHashMayNotReadEndsTheWrite() {
        try (Arena mine = Arena.ofConfined()) {
            var tensor =
                    new StoredTensor(
                            "mine", StoredType.U8, List.of(9 << 20), mine.allocate(9 << 20));

            assertThatThrownBy(
                            () ->
                                    SafetensorsWriter.write(
                                            folder.resolve("mine.safetensors"),
                                            Map.of(),
                                            List.of(tensor)))
                    .isInstanceOf(WrongThreadException.class);
        }
    }

    @Test
    void aValueBeyondTheRangeIsRefusedByName() {
        TensorSource large =
                StoredTensor.ofFloats("large.weight", List.of(2), new float[] {1, 65_520});
        TensorSource infinite =
                StoredTensor.ofFloats("x", List.of(1), new float[] {Float.POSITIVE_INFINITY});

        assertThatThrownBy(() -> written("large", large.as(StoredType.F16)))
                .isInstanceOf(OutOfRangeException.class)
                .hasMessageContaining("large.weight: has a value beyond the range of F16");
        assertThat(written("infinite", infinite.as(StoredType.F16)).real(0))
                .isEqualTo(Double.POSITIVE_INFINITY);
        assertThat(written("bf16", large.as(StoredType.BF16)).real(1)).isEqualTo(65_536);
    }

    /** A tensor of 64 MB, read from a file and written in another type, is never on the heap. */
    @Test
    void conversionDoesNotNeedTheHeap() {
        int elements = 16 << 20;
        Path path = folder.resolve("large.safetensors");
        TensorSource zeros = TensorSource.zeros("large", StoredType.F32, List.of(elements));
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        written("warm", StoredTensor.ofFloats("x", List.of(1), new float[1]).as(StoredType.BF16));

        long before = threads.getCurrentThreadAllocatedBytes();
        SafetensorsWriter.write(path, Map.of(), List.of(zeros.as(StoredType.BF16)));
        try (SafetensorsFile file = SafetensorsFile.open(path);
                Arena arena = Arena.ofConfined()) {
            MemorySegment device = arena.allocate(4L * elements);
            file.tensor("large").copyTo(device);
        }
        long allocated = threads.getCurrentThreadAllocatedBytes() - before;

        assertThat(allocated).isLessThan(4 << 20);
    }

    private StoredTensor written(String name, TensorSource source) {
        Path path = folder.resolve(name + source.type() + ".safetensors");
        SafetensorsWriter.Written written =
                SafetensorsWriter.write(path, Map.of(), List.of(source.named(name)));
        assertThat(written.sha256()).isEqualTo(Sha256.ofFile(path));
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            StoredTensor tensor = file.tensor(name);
            MemorySegment copy = Arena.ofAuto().allocate(tensor.data().byteSize(), 8);
            return new StoredTensor(
                    name, tensor.type(), tensor.shape(), copy.copyFrom(tensor.data()));
        }
    }

    private static StoredTensor everyHalf(StoredType type) {
        MemorySegment data = Arena.ofAuto().allocate(2L * ALL, 8);
        for (int bits = 0; bits < ALL; bits++) {
            data.setAtIndex(ValueLayout.JAVA_SHORT, bits, (short) bits);
        }
        return new StoredTensor("halves", type, List.of(ALL), data);
    }

    private static int halfAt(StoredTensor tensor, int index) {
        return Short.toUnsignedInt(tensor.data().getAtIndex(ValueLayout.JAVA_SHORT, index));
    }

    /** Sign, exponent and fraction as IEEE 754 puts them together. */
    private static double valueOf(StoredType type, int bits) {
        int fractionBits = type == StoredType.F16 ? 10 : 7;
        int exponentBits = 15 - fractionBits;
        int bias = (1 << (exponentBits - 1)) - 1;
        int exponent = (bits >> fractionBits) & ((1 << exponentBits) - 1);
        double fraction = (bits & ((1 << fractionBits) - 1)) / (double) (1 << fractionBits);
        double sign = bits >> 15 == 0 ? 1 : -1;
        if (exponent == (1 << exponentBits) - 1) {
            return fraction == 0 ? sign / 0.0 : Double.NaN;
        }
        return exponent == 0
                ? sign * fraction * Math.pow(2, 1 - bias)
                : sign * (1 + fraction) * Math.pow(2, exponent - bias);
    }
}
