package dev.penstock.runtime.model.memory;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Memory of the host that counts against no device; for one thread, but for what is allocated. */
public final class HostScope implements DeviceScope {
    private static final int LINE_BYTES = 64;

    private final String name;
    private final Arena arena = Arena.ofShared();
    private long liveBytes;
    private boolean closed;

    public HostScope(String name) {
        this.name = name;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public DeviceBuffer allocate(String bufferName, long bytes) {
        liveBytes += bytes;
        return new HostBuffer(bufferName, bytes, arena.allocate(bytes, LINE_BYTES));
    }

    @Override
    public DeviceScope child(String childName, long limitBytes) {
        throw new UnsupportedOperationException("memory of the host is not divided into parts");
    }

    @Override
    public long liveBytes() {
        return liveBytes;
    }

    @Override
    public long peakBytes() {
        return liveBytes;
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            liveBytes = 0;
            arena.close();
        }
    }

    private record HostBuffer(String name, long bytes, MemorySegment segment)
            implements DeviceBuffer {
        @Override
        public long address() {
            return segment.address();
        }
    }
}
