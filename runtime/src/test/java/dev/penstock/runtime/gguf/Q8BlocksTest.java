package dev.penstock.runtime.gguf;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class Q8BlocksTest {
    private static final Path RECORDED = Path.of("src/test/resources/gguf");

    /** Ties and what is beside them, subnormal numbers, zeros of both signs, the largest scale. */
    @Test
    void everyBitIsThatOfGgmlsOwnPackage() throws IOException {
        byte[] floats = Files.readAllBytes(RECORDED.resolve("q8_0.floats"));
        int count = floats.length / (Q8Blocks.ELEMENTS * Float.BYTES);
        byte[] blocks = new byte[count * Q8Blocks.BYTES];

        boolean fits =
                Q8Blocks.encode(
                        MemorySegment.ofArray(floats), MemorySegment.ofArray(blocks), count);

        assertThat(fits).isTrue();
        assertThat(blocks).isEqualTo(Files.readAllBytes(RECORDED.resolve("q8_0.blocks")));
    }

    @ParameterizedTest
    @ValueSource(floats = {Float.NaN, Float.POSITIVE_INFINITY, -1e30f, 65_520 * 127f})
    void aValueThatNoScaleReachesIsRefused(float value) {
        byte[] floats = new byte[Q8Blocks.ELEMENTS * Float.BYTES];
        ByteBuffer.wrap(floats).order(ByteOrder.LITTLE_ENDIAN).putFloat(3 * Float.BYTES, value);

        boolean fits =
                Q8Blocks.encode(
                        MemorySegment.ofArray(floats),
                        MemorySegment.ofArray(new byte[Q8Blocks.BYTES]),
                        1);

        assertThat(fits).isFalse();
        assertThat(Q8Blocks.problem(MemorySegment.ofArray(floats), Q8Blocks.ELEMENTS))
                .contains(
                        Float.isNaN(value)
                                ? "that is NaN"
                                : Float.isInfinite(value)
                                        ? "that is infinite"
                                        : "beyond the range");
    }
}
