package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import jcuda.CudaException;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.JCudaDriver;

/**
 * Copies between a GPU and any memory of the host, by way of pinned memory:
 *
 * <pre>
 *   host  -- this thread -->  one half of the pinned memory  -- the GPU -->  the GPU's memory
 *                             the other half: still on its way
 * </pre>
 *
 * They are work of the kernels' stream, so kernels before and after need no further order. Bytes
 * that are written wait for nothing until a half is full; who reads waits. One copy at a time, by
 * any thread.
 */
final class HostCopies implements AutoCloseable {
    /** A host's core needs longer to fill it than the GPU to fetch it and the driver to say so. */
    static final int HALF_BYTES = 4 << 20;

    /** Where the bytes of a copy begin: as the GPU likes to find them. */
    private static final int ALIGNMENT = 64;

    private static final CUdeviceptr NOWHERE = new CUdeviceptr();

    private final GpuContext gpu;
    private final Held held;
    private final HostPointer pinned;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment memory;

    /** Reached when the GPU no longer uses a half. */
    private final CUevent[] done;

    /** The half that is being filled, and how far. */
    private int half;

    private int filled;
    private boolean closed;

    /**
     * @throws DeviceException if the host has no such memory
     */
    HostCopies(GpuContext gpu) {
        this.gpu = gpu;
        held = new Held(gpu, "pinned memory for copies");
        try {
            pinned = held.pinned(2L * HALF_BYTES, 0);
            done = new CUevent[] {held.event(), held.event()};
        } catch (CudaException e) {
            held.close();
            throw GpuFailure.of(
                    "taking %,d bytes of pinned memory for GPU %d"
                            .formatted(2L * HALF_BYTES, gpu.index()),
                    e);
        }
        memory =
                MemorySegment.ofAddress(pinned.address()).reinterpret(2L * HALF_BYTES, arena, null);
    }

    /** Copies to a buffer; see {@link dev.penstock.cuda.device.DeviceBuffer#write}. */
    void write(GpuBuffer to, long offset, MemorySegment from) {
        write(to.pointer(offset), from, to.name());
    }

    /**
     * Copies to memory of the GPU that is no tensor's.
     *
     * @param address from which on there is room
     */
    void write(long address, MemorySegment from) {
        write(NOWHERE.withByteOffset(address), from, "scratch");
    }

    private synchronized void write(CUdeviceptr to, MemorySegment from, String name) {
        try {
            for (long at = 0; at < from.byteSize(); ) {
                if (filled == HALF_BYTES) {
                    turn();
                }
                long bytes = Math.min(HALF_BYTES - filled, from.byteSize() - at);
                long place = (long) half * HALF_BYTES + filled;
                MemorySegment.copy(from, at, memory, place, bytes);
                CUdeviceptr target = to.withByteOffset(at);
                give(
                        () ->
                                JCudaDriver.cuMemcpyHtoDAsync(
                                        target, pinnedAt(place), bytes, gpu.stream()));
                filled =
                        (int)
                                Math.min(
                                        HALF_BYTES,
                                        Math.ceilDiv(filled + bytes, ALIGNMENT) * (long) ALIGNMENT);
                at += bytes;
            }
        } catch (CudaException e) {
            throw failure("to", name, e);
        }
    }

    /** Goes on with the other half, as soon as what was in it has left. */
    private void turn() {
        int full = half;
        give(() -> JCudaDriver.cuEventRecord(done[full], gpu.stream()));
        half = 1 - half;
        filled = 0;
        JCudaDriver.cuEventSynchronize(done[half]);
    }

    /** Copies from a buffer; see {@link dev.penstock.cuda.device.DeviceBuffer#read}. */
    synchronized void read(GpuBuffer from, long offset, MemorySegment to) {
        long size = to.byteSize();
        try {
            for (long at = 0; at < size; at += HALF_BYTES) {
                if (at == 0) {
                    fetch(from, offset, 0, size);
                }
                long next = at + HALF_BYTES;
                if (next < size) {
                    fetch(from, offset, next, size); // while the host empties the other half
                    JCudaDriver.cuEventSynchronize(done[halfOf(at)]);
                } else {
                    gpu.finish();
                }
                long bytes = Math.min(HALF_BYTES, size - at);
                MemorySegment.copy(memory, (long) halfOf(at) * HALF_BYTES, to, at, bytes);
            }
        } catch (CudaException e) {
            throw failure("from", from.name(), e);
        }
        filled = 0; // what was written before has left too
    }

    private void fetch(GpuBuffer from, long offset, long at, long size) {
        long bytes = Math.min(HALF_BYTES, size - at);
        CUdeviceptr source = from.pointer(offset + at);
        give(
                () -> {
                    JCudaDriver.cuMemcpyDtoHAsync(
                            pinnedAt((long) halfOf(at) * HALF_BYTES), source, bytes, gpu.stream());
                    JCudaDriver.cuEventRecord(done[halfOf(at)], gpu.stream());
                });
    }

    private static int halfOf(long at) {
        return (int) (at / HALF_BYTES % 2);
    }

    /** Behind what was asked for before, and in no graph. */
    private void give(Runnable work) {
        gpu.giving();
        gpu.bind();
        synchronized (gpu.stream()) { // or another thread's capture might get it
            work.run();
        }
        gpu.gave();
    }

    private HostPointer pinnedAt(long offset) {
        return new HostPointer(pinned.address() + offset);
    }

    private DeviceException failure(String direction, String buffer, CudaException e) {
        return GpuFailure.of(
                "copying %s '%s' of GPU %d".formatted(direction, buffer, gpu.index()), e);
    }

    /** Waits for what is on its way. Never throws: those of a lost GPU close too. */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        gpu.finishAnyway();
        arena.close();
        held.close();
    }
}
