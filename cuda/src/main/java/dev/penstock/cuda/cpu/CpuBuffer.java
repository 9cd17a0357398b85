package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.memory.OwnedBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** A block of off-heap memory with an arena of its own, so that access after free throws. */
final class CpuBuffer implements OwnedBuffer {
    private final String name;
    private final String scopePath;
    private final Arena arena;
    private final MemorySegment segment;
    private volatile boolean freed;

    CpuBuffer(String name, String scopePath, Arena arena, MemorySegment segment) {
        this.name = name;
        this.scopePath = scopePath;
        this.arena = arena;
        this.segment = segment;
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

    @Override
    public void free() {
        freed = true;
        arena.close();
    }
}
