package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import jcuda.CudaException;
import jcuda.driver.JCudaDriver;

/**
 * Pinned memory of the host that kernels write numbers to, over the bus: the host reads them after
 * one wait, and no page has to travel. Zero at first. The rank's thread only.
 */
final class Answers implements AutoCloseable {
    private final GpuContext gpu;
    private final Held held;
    private final HostPointer pinned;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment words;
    private boolean closed;

    /**
     * @throws DeviceException if the host has no such memory
     */
    Answers(GpuContext gpu, long bytes) {
        this.gpu = gpu;
        held = new Held(gpu, "pinned memory");
        try {
            pinned = held.pinned(bytes, JCudaDriver.CU_MEMHOSTALLOC_DEVICEMAP);
        } catch (CudaException e) {
            throw GpuFailure.of(
                    "taking %,d bytes of pinned memory for GPU %d".formatted(bytes, gpu.index()),
                    e);
        }
        words = MemorySegment.ofAddress(pinned.address()).reinterpret(bytes, arena, null);
        words.fill((byte) 0);
    }

    /** Where kernels write; host and GPU have one address space. */
    long address(long offset) {
        return pinned.address() + offset;
    }

    /** For numbers that kernels read: to be written when none of them can be under way. */
    MemorySegment words() {
        return words;
    }

    /** What kernels wrote that were asked for before; waits for them. */
    MemorySegment await() {
        gpu.finish();
        return words;
    }

    /** Never throws: those of a lost GPU close too. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        arena.close();
        held.close();
    }
}
