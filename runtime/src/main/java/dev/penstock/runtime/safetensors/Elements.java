package dev.penstock.runtime.safetensors;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Conversion of floating-point elements, many at a time. Files are little-endian. */
final class Elements {
    private static final ValueLayout.OfDouble F64 =
            ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfFloat F32 =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfShort HALF =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfInt NATIVE_BITS = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfFloat NATIVE = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private Elements() {}

    /**
     * Copies stored elements as floats in this machine's byte order. F16 and BF16 keep their exact
     * values, F64 is rounded to the nearest.
     *
     * @param from first element of {@code stored}
     * @param to first element of {@code floats}
     */
    static void widen(
            StoredType type,
            MemorySegment stored,
            long from,
            MemorySegment floats,
            long to,
            long count) {
        switch (type) {
            case F32 -> MemorySegment.copy(stored, F32, from * 4, floats, NATIVE, to * 4, count);
            case BF16 -> {
                for (long i = 0; i < count; i++) {
                    int bits = stored.get(HALF, (from + i) * 2) << 16;
                    floats.set(NATIVE_BITS, (to + i) * 4, bits);
                }
            }
            case F16 -> {
                for (long i = 0; i < count; i++) {
                    float value = Float.float16ToFloat(stored.get(HALF, (from + i) * 2));
                    floats.set(NATIVE, (to + i) * 4, value);
                }
            }
            case F64 -> {
                for (long i = 0; i < count; i++) {
                    floats.set(NATIVE, (to + i) * 4, (float) stored.get(F64, (from + i) * 8));
                }
            }
            case I64, I32, I16, I8, U64, U32, U16, U8, BOOL ->
                    throw new IllegalArgumentException(type + " is not floating-point");
        }
    }

    /**
     * Stores floats from element 0 on, rounded to the nearest, ties to even.
     *
     * @param to first element of {@code stored}
     * @return false if a finite value became infinite
     */
    static boolean narrow(
            StoredType type, MemorySegment floats, MemorySegment stored, long to, long count) {
        return switch (type) {
            case F32 -> {
                MemorySegment.copy(floats, NATIVE, 0, stored, F32, to * 4, count);
                yield true;
            }
            case BF16 -> toBf16(floats, stored, to, count);
            case F16 -> toF16(floats, stored, to, count);
            case F64, I64, I32, I16, I8, U64, U32, U16, U8, BOOL ->
                    throw new IllegalArgumentException("weights are not written as " + type);
        };
    }

    private static boolean toF16(MemorySegment floats, MemorySegment stored, long to, long count) {
        boolean fits = true;
        for (long i = 0; i < count; i++) {
            float value = floats.get(NATIVE, i * 4);
            short half = Float.floatToFloat16(value);
            fits &= (half & 0x7fff) != 0x7c00 || Float.isInfinite(value);
            stored.set(HALF, (to + i) * 2, half);
        }
        return fits;
    }

    private static boolean toBf16(MemorySegment floats, MemorySegment stored, long to, long count) {
        boolean fits = true;
        for (long i = 0; i < count; i++) {
            int bits = floats.get(NATIVE_BITS, i * 4);
            int half = bf16(bits);
            fits &= (half & 0x7fff) != 0x7f80 || (bits & 0x7fffffff) == 0x7f800000;
            stored.set(HALF, (to + i) * 2, (short) half);
        }
        return fits;
    }

    private static int bf16(int bits) {
        boolean nan = (bits & 0x7fffffff) > 0x7f800000;
        int rounded = (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
        return nan ? (bits >>> 16) | 0x40 : rounded;
    }
}
