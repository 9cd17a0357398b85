package dev.penstock.cuda.cpu.vector;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Absolute addresses through one segment over all memory: with it a kernel's inner loop has a base
 * and an index, as in C. Addresses come from tensors that are alive and whose shapes were checked.
 */
public final class Addresses {
    public static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    /** Small beside the first-level cache. */
    private static final MemorySegment ZEROS = Arena.global().allocate(4096, 64);

    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private Addresses() {}

    public static float getFloat(long address) {
        return ALL.get(FLOAT, address);
    }

    public static void setFloat(long address, float value) {
        ALL.set(FLOAT, address, value);
    }

    public static int getInt(long address) {
        return ALL.get(INT, address);
    }

    public static void setInt(long address, int value) {
        ALL.set(INT, address, value);
    }

    public static long getLong(long address) {
        return ALL.get(LONG, address);
    }

    public static void setLong(long address, long value) {
        ALL.set(LONG, address, value);
    }

    /**
     * Sets bytes to zero, by copying: filling wants a segment made for the place, and kernels clear
     * something for every row.
     */
    public static void clear(long address, long bytes) {
        long end = address + bytes;
        for (long at = address; at < end; at += ZEROS.byteSize()) {
            copy(ZEROS.address(), at, Math.min(ZEROS.byteSize(), end - at));
        }
    }

    public static void copy(long from, long to, long bytes) {
        MemorySegment.copy(ALL, from, ALL, to, bytes);
    }
}
