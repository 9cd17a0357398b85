package dev.penstock.runtime.safetensors;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Converts elements to another floating-point type as they are read. */
final class ConvertedReading implements TensorSource.Reading {
    /** Elements converted at a time: little enough to stay in a core's cache. */
    private static final int ELEMENTS = 8192;

    private final TensorSource source;
    private final StoredType type;
    private final TensorSource.Reading reading;
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment stored;
    private final MemorySegment floats;

    ConvertedReading(TensorSource source, StoredType type) {
        this.source = source;
        this.type = type;
        this.reading = source.open();
        this.stored = arena.allocate((long) ELEMENTS * source.type().bytes(), 8);
        this.floats = arena.allocate((long) ELEMENTS * Float.BYTES, 8);
    }

    @Override
    public MemorySegment next(int bytes, MemorySegment buffer) {
        int count = bytes / type.bytes();
        for (int done = 0; done < count; ) {
            int some = Math.min(ELEMENTS, count - done);
            MemorySegment from = reading.next(some * source.type().bytes(), stored);
            Elements.widen(source.type(), from, 0, floats, 0, some);
            boolean fits = Elements.narrow(type, floats, buffer, done, some);
            if (!fits) {
                throw new OutOfRangeException(source.name(), type);
            }
            done += some;
        }
        return buffer.asSlice(0, bytes);
    }

    @Override
    public void close() {
        reading.close();
        arena.close();
    }
}
