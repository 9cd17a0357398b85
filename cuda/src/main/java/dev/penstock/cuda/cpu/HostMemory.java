package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Zeroed off-heap memory. Small blocks come from the C library, 64-byte aligned. Big ones are
 * mapped on 2 MiB boundaries and advised to use huge pages: weights and activations are walked from
 * end to end, and with 4 KiB pages the walk is bound by address translation.
 */
final class HostMemory {
    private static final long HUGE_PAGE = 2L << 20;
    private static final long MAP_FROM_BYTES = 1L << 20;
    private static final boolean LINUX = System.getProperty("os.name", "").startsWith("Linux");
    private static final int PROT_READ_WRITE = 3;
    private static final int MAP_PRIVATE_ANONYMOUS = 0x22;
    private static final int MADV_HUGEPAGE = 14;

    private static final MethodHandle MMAP =
            function(
                    "mmap",
                    FunctionDescriptor.of(
                            ValueLayout.JAVA_LONG,
                            ValueLayout.JAVA_LONG,
                            ValueLayout.JAVA_LONG,
                            ValueLayout.JAVA_INT,
                            ValueLayout.JAVA_INT,
                            ValueLayout.JAVA_INT,
                            ValueLayout.JAVA_LONG));
    private static final MethodHandle MUNMAP =
            function(
                    "munmap",
                    FunctionDescriptor.of(
                            ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));
    private static final MethodHandle MADVISE =
            function(
                    "madvise",
                    FunctionDescriptor.of(
                            ValueLayout.JAVA_INT,
                            ValueLayout.JAVA_LONG,
                            ValueLayout.JAVA_LONG,
                            ValueLayout.JAVA_INT));

    private HostMemory() {}

    /** Allocates {@code bytes} of zeros that live as long as the arena. */
    static MemorySegment allocate(Arena arena, long bytes) {
        if (!LINUX || bytes < MAP_FROM_BYTES) {
            return arena.allocate(bytes, 64);
        }
        long rounded = (bytes + HUGE_PAGE - 1) & -HUGE_PAGE;
        long mapped = map(rounded + HUGE_PAGE);
        long aligned = (mapped + HUGE_PAGE - 1) & -HUGE_PAGE;
        adviseHugePages(aligned, rounded);
        return MemorySegment.ofAddress(aligned)
                .reinterpret(bytes, arena, _ -> unmap(mapped, rounded + HUGE_PAGE));
    }

    private static long map(long bytes) {
        try {
            long address =
                    (long)
                            MMAP.invokeExact(
                                    0L, bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0L);
            if (address == -1) {
                throw new DeviceException(
                        "allocating device memory: the system refused %,d bytes; try a smaller model or batch"
                                .formatted(bytes));
            }
            return address;
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    private static void unmap(long address, long bytes) {
        try {
            int _ = (int) MUNMAP.invokeExact(address, bytes);
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    /** Advice only: a kernel without huge pages refuses, and all works on, slower. */
    private static void adviseHugePages(long address, long bytes) {
        try {
            int _ = (int) MADVISE.invokeExact(address, bytes, MADV_HUGEPAGE);
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    private static MethodHandle function(String name, FunctionDescriptor descriptor) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor);
    }

    private static RuntimeException rethrown(Throwable e) {
        return switch (e) {
            case RuntimeException runtime -> runtime;
            case Error error -> throw error;
            default -> new DeviceException("a call into the C library failed", e);
        };
    }
}
