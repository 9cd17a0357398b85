package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.safetensors.TensorSource.Reading;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Reads a tensor that was put together in memory of its own, and frees that at the end. */
record HeldReading(Reading whole, Arena arena) implements Reading {
    /** Copies, as what is read has to outlive the memory. */
    @Override
    public MemorySegment next(int bytes, MemorySegment buffer) {
        return buffer.asSlice(0, bytes).copyFrom(whole.next(bytes, buffer));
    }

    @Override
    public void close() {
        arena.close();
    }
}
