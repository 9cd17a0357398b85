package dev.penstock.cuda.cpu;

import dev.penstock.cuda.memory.AccountedScope;
import dev.penstock.cuda.memory.OwnedBuffer;
import java.lang.foreign.Arena;

/** Scopes over {@link HostMemory}. */
public final class CpuScope {
    private CpuScope() {}

    /**
     * A tree of its own.
     *
     * @param traceAllocations whether leak reports show where each buffer was allocated
     */
    public static AccountedScope root(String name, long limitBytes, boolean traceAllocations) {
        return AccountedScope.root(CpuScope::take, name, limitBytes, traceAllocations);
    }

    private static OwnedBuffer take(String name, String scopePath, long bytes) {
        Arena arena = Arena.ofShared();
        try {
            return new CpuBuffer(name, scopePath, arena, HostMemory.allocate(arena, bytes));
        } catch (RuntimeException | OutOfMemoryError e) {
            arena.close();
            throw e;
        }
    }
}
