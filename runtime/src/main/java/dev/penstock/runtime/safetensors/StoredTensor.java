package dev.penstock.runtime.safetensors;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.penstock.actors.spi.TensorPiece;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/**
 * A tensor in a file, or about to be written to one. Row-major, little-endian.
 *
 * @param name as in the file
 * @param shape dimensions; empty for a scalar
 * @param data the elements, unaligned; lives as long as the file or device buffer it belongs to
 */
public record StoredTensor(String name, StoredType type, List<Integer> shape, MemorySegment data)
        implements TensorSource {
    private static final ValueLayout.OfDouble F64 =
            ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfFloat F32 =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfShort HALF =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfInt I32 =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfLong I64 =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(LITTLE_ENDIAN);

    public StoredTensor {
        shape = List.copyOf(shape);
        long bytes = Math.multiplyExact(elements(shape), (long) type.bytes());
        if (data.byteSize() != bytes) {
            throw new IllegalArgumentException(
                    "%s: %s %s takes %d bytes, got %d"
                            .formatted(name, type, shape, bytes, data.byteSize()));
        }
    }

    /** Returns an F32 tensor that holds a copy of the values. */
    public static StoredTensor ofFloats(String name, List<Integer> shape, float[] values) {
        MemorySegment data = Arena.ofAuto().allocateFrom(F32, values);
        return new StoredTensor(name, StoredType.F32, shape, data);
    }

    /** Returns an I64 tensor that holds a copy of the values. */
    public static StoredTensor ofLongs(String name, List<Integer> shape, long[] values) {
        MemorySegment data = Arena.ofAuto().allocateFrom(I64, values);
        return new StoredTensor(name, StoredType.I64, shape, data);
    }

    private static long elements(List<Integer> shape) {
        long elements = 1;
        for (int dimension : shape) {
            elements = Math.multiplyExact(elements, (long) dimension);
        }
        return elements;
    }

    /** Returns element {@code index} of a floating-point tensor. */
    public double real(long index) {
        return switch (type) {
            case F64 -> data.get(F64, index * 8);
            case F32 -> data.get(F32, index * 4);
            case F16 -> Float.float16ToFloat(data.get(HALF, index * 2));
            case BF16 -> Float.intBitsToFloat(data.get(HALF, index * 2) << 16);
            case I64, I32, I16, I8, U64, U32, U16, U8, BOOL -> throw notOf("floating-point");
        };
    }

    /** Returns element {@code index} of an I64 or I32 tensor. */
    public long integer(long index) {
        return switch (type) {
            case I64 -> data.get(I64, index * 8);
            case I32 -> data.get(I32, index * 4);
            case F64, F32, F16, BF16, I16, I8, U64, U32, U16, U8, BOOL -> throw notOf("I64 or I32");
        };
    }

    /**
     * Copies a floating-point tensor as F32 in the byte order of this machine.
     *
     * @param target has room for exactly {@link #elements()} floats
     */
    public void copyTo(MemorySegment target) {
        if (target.byteSize() != elements() * 4) {
            throw new IllegalArgumentException(
                    "%s %s needs %d bytes as F32, but the target has %d"
                            .formatted(name, shape, elements() * 4, target.byteSize()));
        }
        copy(0, target, 0, elements());
    }

    /**
     * Copies a piece of a floating-point tensor as F32 in the byte order of this machine.
     *
     * @param piece of this shape
     * @param target has room for its elements, perhaps for more
     */
    public void copyTo(TensorPiece piece, MemorySegment target) {
        piece.walk((inWhole, inPiece, count) -> copy(inWhole, target, inPiece, count));
    }

    private void copy(long from, MemorySegment target, long to, long count) {
        Elements.widen(type, data, from, target, to, count);
    }

    @Override
    public Reading open() {
        return new Reading() {
            private long at;

            @Override
            public MemorySegment next(int bytes, MemorySegment buffer) {
                at += bytes;
                return data.asSlice(at - bytes, bytes);
            }
        };
    }

    /** Returns a copy of a floating-point tensor as F32. */
    public float[] toFloats() {
        float[] values = new float[Math.toIntExact(elements())];
        copyTo(MemorySegment.ofArray(values));
        return values;
    }

    private IllegalStateException notOf(String wanted) {
        return new IllegalStateException(name + " is " + type + ", not " + wanted);
    }
}
