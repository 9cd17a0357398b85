package dev.penstock.actors.simulation;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import java.lang.foreign.MemorySegment;

/** Memory on the heap: thousands of runs allocate and forget it. Use after closing is an error. */
final class SimMemory implements DeviceScope {
    /** Enough for the tensors of a simulation; blocks of collectives are as long as real ones. */
    private static final long LONGEST = 1_024;

    private final String name;
    private boolean closed;

    SimMemory(String name) {
        this.name = name;
    }

    private final class Buffer implements DeviceBuffer {
        private final String title;
        private final long bytes;
        private final MemorySegment memory;

        Buffer(String title, long bytes) {
            long kept = Math.min(bytes, LONGEST);
            this.title = title;
            this.bytes = bytes;
            this.memory = MemorySegment.ofArray(new long[(int) ((kept + 7) / 8)]).asSlice(0, kept);
        }

        @Override
        public String name() {
            return title;
        }

        @Override
        public long bytes() {
            return bytes;
        }

        @Override
        public long address() {
            throw new DeviceException("simulated memory has no addresses");
        }

        @Override
        public MemorySegment segment() {
            if (closed) {
                throw new DeviceException("'%s' of '%s' was freed".formatted(title, name));
            }
            return memory;
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public DeviceBuffer allocate(String title, long bytes) {
        return new Buffer(title, bytes);
    }

    @Override
    public DeviceScope child(String childName, long limitBytes) {
        return new SimMemory(childName);
    }

    @Override
    public long liveBytes() {
        return 0;
    }

    @Override
    public long peakBytes() {
        return 0;
    }

    @Override
    public void close() {
        closed = true;
    }
}
