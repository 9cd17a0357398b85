package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** A block of off-heap memory with an arena of its own, so that access after free throws. */
final class CpuBuffer implements DeviceBuffer {
    private final String name;
    private final String scopePath;
    private final Arena arena;
    private final MemorySegment segment;
    private final @Nullable Throwable allocatedAt;
    private volatile boolean freed;

    CpuBuffer(
            String name,
            String scopePath,
            Arena arena,
            MemorySegment segment,
            @Nullable Throwable allocatedAt) {
        this.name = name;
        this.scopePath = scopePath;
        this.arena = arena;
        this.segment = segment;
        this.allocatedAt = allocatedAt;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public long bytes() {
        return segment.byteSize();
    }

    @Override
    public long address() {
        return segment().address();
    }

    @Override
    public MemorySegment segment() {
        if (freed) {
            throw new DeviceException(
                    "use of buffer '%s' of scope '%s': expected it alive, but its scope was closed; keep it in a longer-lived scope"
                            .formatted(name, scopePath));
        }
        return segment;
    }

    void free() {
        freed = true;
        arena.close();
    }

    /** Where this buffer was allocated, if allocations are traced. */
    @Nullable Throwable allocatedAt() {
        return allocatedAt;
    }
}
