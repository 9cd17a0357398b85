package dev.penstock.runtime.gguf;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Q8_0: 32 neighbours of a row share a scale d = max|x| / 127, stored as F16, and each is a byte
 * round(x / d). As ggml's reference does it: the bytes come from x times 1 / d of the unrounded d,
 * all in float32, and halves are rounded away from zero.
 */
final class Q8Blocks {
    static final int ELEMENTS = 32;
    static final int BYTES = 34;

    private static final ValueLayout.OfFloat F32 =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfShort F16 =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(LITTLE_ENDIAN);

    private Q8Blocks() {}

    /**
     * Encodes blocks.
     *
     * @param floats little-endian, 32 for each block
     * @param blocks has room for 34 bytes each
     * @return false if a scale is beyond the range of F16 or a value is not finite
     */
    static boolean encode(MemorySegment floats, MemorySegment blocks, int count) {
        boolean fits = true;
        for (int block = 0; block < count; block++) {
            long from = (long) block * ELEMENTS * Float.BYTES;
            long to = (long) block * BYTES;
            float most = 0;
            for (int i = 0; i < ELEMENTS; i++) {
                most = Math.max(most, Math.abs(floats.get(F32, from + i * 4L)));
            }
            float scale = most / 127;
            float inverse = scale == 0 ? 0 : 1 / scale;
            short half = Float.floatToFloat16(scale);
            fits &= Float.isFinite(Float.float16ToFloat(half));
            blocks.set(F16, to, half);
            for (int i = 0; i < ELEMENTS; i++) {
                float value = floats.get(F32, from + i * 4L) * inverse;
                blocks.set(ValueLayout.JAVA_BYTE, to + 2 + i, (byte) rounded(value));
            }
        }
        return fits;
    }

    /** What keeps these values from being encoded, and what to do. */
    static String problem(MemorySegment floats, int count) {
        for (int i = 0; i < count; i++) {
            float value = floats.get(F32, i * 4L);
            if (!Float.isFinite(value)) {
                return "has a value that is %s, which Q8_0 has not; try f32, or weights without it"
                        .formatted(Float.isNaN(value) ? "NaN" : "infinite");
            }
        }
        return "has a value beyond the range of Q8_0; try another type";
    }

    /** Of a value from -127 to 127; Math.round would take -0.5 to 0. */
    private static int rounded(float value) {
        float magnitude = Math.abs(value);
        int whole = (int) magnitude;
        int nearest = magnitude - whole >= 0.5f ? whole + 1 : whole;
        return value < 0 ? -nearest : nearest;
    }
}
