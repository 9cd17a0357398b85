package dev.penstock.actors.dataplane.aeron;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import org.agrona.DirectBuffer;

/**
 * Copies between segments and Aeron's mapped logs without an object per chunk. The segment's bounds
 * and life are checked; the log's are Aeron's promise.
 */
final class RawMemory {
    /** All addresses: for places in a log. */
    static final MemorySegment EVERYTHING = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private RawMemory() {}

    static void copyTo(DirectBuffer log, int index, MemorySegment source, long offset, int bytes) {
        MemorySegment.copy(source, offset, EVERYTHING, log.addressOffset() + index, bytes);
    }

    static ByteBuffer view(long address, int bytes) {
        return EVERYTHING.asSlice(address, bytes).asByteBuffer();
    }
}
