package dev.penstock.runtime.safetensors;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A tensor about to be written. Its bytes are read once from first to last, in pieces, so a tensor
 * that is converted or put together on the way need not exist as a whole.
 */
public interface TensorSource extends TensorFacts {
    /** Returns the size of all elements. */
    default long bytes() {
        return Math.multiplyExact(elements(), (long) type().bytes());
    }

    /** Starts to read the elements; the caller closes what it gets. */
    Reading open();

    /** Elements in their order, little-endian. Used by one thread. */
    interface Reading extends AutoCloseable {
        /**
         * Returns the next bytes, in {@code buffer} or where they lie.
         *
         * @param bytes whole elements, no more than are left
         * @param buffer has room for them
         * @return memory that is readable from any thread, and unchanged until everything is
         *     written; only {@code buffer} may be reused by the caller
         */
        MemorySegment next(int bytes, MemorySegment buffer);

        @Override
        default void close() {}
    }

    /** Returns a tensor of zeros. */
    static TensorSource zeros(String name, StoredType type, List<Integer> shape) {
        return new DerivedTensor(
                name,
                type,
                List.copyOf(shape),
                () -> (bytes, buffer) -> buffer.asSlice(0, bytes).fill((byte) 0));
    }

    /** Returns the same tensor under another name. */
    default TensorSource named(String other) {
        return new DerivedTensor(other, type(), shape(), this::open);
    }

    /**
     * Returns the same tensor with elements of another floating-point type. F16 and BF16 become F32
     * exactly; the other way values are rounded to the nearest, ties to the even one, as IEEE 754
     * does. A finite value beyond the range of the narrower type is refused while it is read.
     */
    default TensorSource as(StoredType other) {
        return other == type()
                ? this
                : new DerivedTensor(
                        name(), other, shape(), () -> new ConvertedReading(this, other));
    }
}
