package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.memory.MemorySource;
import dev.penstock.cuda.memory.OwnedBuffer;
import java.util.function.Consumer;
import jcuda.CudaException;
import jcuda.driver.CUmemAttach_flags;
import jcuda.driver.CUmem_advise;
import jcuda.driver.JCudaDriver;

/**
 * Managed memory that lives on the GPU: kernels use it at full speed, and the few pages that the
 * host touches (tokens, losses, checkpoints) travel by themselves. What links carry is the GPU's
 * alone, with pinned memory beside it.
 */
final class GpuMemory implements MemorySource {
    private final GpuContext gpu;
    private final CopyStreams copies;

    /**
     * @param copies for staged buffers
     */
    GpuMemory(GpuContext gpu, CopyStreams copies) {
        this.gpu = gpu;
        this.copies = copies;
    }

    @Override
    public OwnedBuffer take(String name, String scopePath, long bytes) {
        DevicePointer pointer = allocateManaged(bytes);
        return zeroed(new GpuBuffer(gpu, name, scopePath, pointer, bytes), pointer);
    }

    @Override
    public OwnedBuffer takeStaged(String name, String scopePath, long bytes) {
        // not managed: peers copy to it, and the host works on what is pinned
        DevicePointer pointer = allocate(bytes, fresh -> JCudaDriver.cuMemAlloc(fresh, bytes));
        HostPointer pinned = new HostPointer();
        try {
            JCudaDriver.cuMemHostAlloc(pinned, bytes, JCudaDriver.CU_MEMHOSTALLOC_PORTABLE);
        } catch (CudaException e) {
            JCudaDriver.cuMemFree(pointer);
            throw new DeviceException(
                    "the host has no %,d bytes of pinned memory for GPU %d, the driver answers %s; lower batch or slices, or raise the limit on locked memory"
                            .formatted(bytes, gpu.index(), e.getMessage()),
                    e);
        }
        return zeroed(
                new StagedBuffer(gpu, copies, name, scopePath, pointer, pinned, bytes), pointer);
    }

    @Override
    public boolean stages() {
        return true;
    }

    private DevicePointer allocateManaged(long bytes) {
        DevicePointer pointer =
                allocate(
                        bytes,
                        fresh ->
                                JCudaDriver.cuMemAllocManaged(
                                        fresh, bytes, CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL));
        try {
            JCudaDriver.cuMemAdvise(
                    pointer,
                    bytes,
                    CUmem_advise.CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                    gpu.device());
        } catch (CudaException e) {
            JCudaDriver.cuMemFree(pointer);
            throw GpuFailure.of("placing memory on GPU " + gpu.index(), e);
        }
        return pointer;
    }

    private DevicePointer allocate(long bytes, Consumer<DevicePointer> way) {
        gpu.bind();
        checkRoom(bytes);
        DevicePointer pointer = new DevicePointer();
        try {
            way.accept(pointer);
        } catch (CudaException e) {
            throw new DeviceException(
                    "GPU %d answers %s".formatted(gpu.index(), e.getMessage()), e);
        }
        return pointer;
    }

    /** Waits for the zeros: managed memory takes room when the GPU first touches it. */
    private GpuBuffer zeroed(GpuBuffer buffer, DevicePointer pointer) {
        long bytes = buffer.bytes();
        try {
            gpu.giving();
            synchronized (gpu.stream()) { // or it might get into a graph
                JCudaDriver.cuMemsetD8Async(pointer, (byte) 0, bytes, gpu.stream());
            }
            gpu.gave();
            gpu.finish();
        } catch (CudaException e) {
            buffer.free();
            throw GpuFailure.of("zeroing '%s'".formatted(buffer.name()), e);
        } catch (DeviceException e) {
            buffer.free(); // what was asked for before does not go
            throw e;
        }
        return buffer;
    }

    /**
     * Managed memory would spill to the host without a word: training would crawl, or the GPU hang.
     */
    private void checkRoom(long bytes) {
        long[] free = new long[1];
        long[] total = new long[1];
        JCudaDriver.cuMemGetInfo(free, total);
        if (bytes > free[0]) {
            throw new DeviceException(
                    "GPU %d has %,d of its %,d bytes left; make the work smaller or use more GPUs"
                            .formatted(gpu.index(), free[0], total[0]));
        }
    }
}
