package dev.penstock.runtime.gguf;

import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.LongUnaryOperator;

/**
 * A tensor with its elements in another order, as F32. The whole is held outside the heap while it
 * is read.
 *
 * @param from element of {@code source} for an element of this
 */
record Rearranged(TensorSource source, List<Integer> shape, LongUnaryOperator from)
        implements TensorSource {
    private static final int CHUNK_BYTES = 1 << 16;

    /** Returns a matrix [in, out] as [out, in]. */
    static TensorSource transposed(TensorSource matrix) {
        int rows = matrix.shape().get(0);
        int columns = matrix.shape().get(1);
        return new Rearranged(
                matrix, List.of(columns, rows), to -> to % rows * columns + to / rows);
    }

    /**
     * Returns the projection of queries or keys for rotary positions that turn neighbours. Hugging
     * Face's turn element i with element i + n/2 of a head of n; so element i goes to place 2 i,
     * and its partner behind it.
     *
     * @param projection [heads x n, in], or [heads x n] for its bias
     */
    static TensorSource withNeighboursTurned(TensorSource projection, int heads) {
        int rows = projection.shape().getFirst();
        int head = rows / heads;
        long width = projection.elements() / rows;
        return new Rearranged(
                projection,
                projection.shape(),
                to -> {
                    long row = to / width;
                    long inHead = row % head;
                    long sourceRow = row - inHead + inHead % 2 * (head / 2) + inHead / 2;
                    return sourceRow * width + to % width;
                });
    }

    @Override
    public String name() {
        return source.name();
    }

    @Override
    public StoredType type() {
        return StoredType.F32;
    }

    @Override
    public Reading open() {
        Arena arena = Arena.ofConfined();
        MemorySegment whole = arena.allocate(Math.max(1, bytes()), Long.BYTES);
        try (Reading reading = source.as(StoredType.F32).open()) {
            for (long at = 0; at < bytes(); ) {
                int count = (int) Math.min(CHUNK_BYTES, bytes() - at);
                MemorySegment room = whole.asSlice(at, count);
                MemorySegment next = reading.next(count, room);
                if (next.address() != room.address()) {
                    room.copyFrom(next);
                }
                at += count;
            }
        }
        return new Reading() {
            private long next;

            @Override
            public MemorySegment next(int bytes, MemorySegment buffer) {
                int count = bytes / Float.BYTES;
                for (int i = 0; i < count; i++) {
                    long element = from.applyAsLong(next + i);
                    // little-endian stays as it is: bits are moved, not read
                    int bits = whole.get(ValueLayout.JAVA_INT_UNALIGNED, element * 4);
                    buffer.set(ValueLayout.JAVA_INT_UNALIGNED, i * 4L, bits);
                }
                next += count;
                return buffer.asSlice(0, bytes);
            }

            @Override
            public void close() {
                arena.close();
            }
        };
    }
}
