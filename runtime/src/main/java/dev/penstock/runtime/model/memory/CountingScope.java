package dev.penstock.runtime.model.memory;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * A scope that allocates nothing and counts: the memory of a stage is predicted by building it
 * here, so prediction and allocation cannot disagree.
 */
public final class CountingScope implements DeviceScope {
    private final String name;
    private final List<CountingScope> children = new ArrayList<>();
    private long ownBytes;

    public CountingScope(String name) {
        this.name = name;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public DeviceBuffer allocate(String bufferName, long bytes) {
        ownBytes += bytes;
        return new CountedBuffer(bufferName, bytes);
    }

    @Override
    public DeviceScope child(String childName, long limitBytes) {
        CountingScope child = new CountingScope(childName);
        children.add(child);
        return child;
    }

    @Override
    public long liveBytes() {
        return ownBytes + children.stream().mapToLong(CountingScope::liveBytes).sum();
    }

    @Override
    public long peakBytes() {
        return liveBytes();
    }

    @Override
    public void close() {}

    /** A buffer without memory. */
    record CountedBuffer(String name, long bytes) implements DeviceBuffer {
        @Override
        public long address() {
            throw new DeviceException(name + " was only counted and has no memory");
        }

        @Override
        public MemorySegment segment() {
            throw new DeviceException(name + " was only counted and has no memory");
        }
    }
}
