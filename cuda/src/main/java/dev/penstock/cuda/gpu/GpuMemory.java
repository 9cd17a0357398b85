package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.memory.MemorySource;
import dev.penstock.cuda.memory.OwnedBuffer;
import jcuda.CudaException;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/** Memory of the GPU alone; what links carry has pinned memory of the host beside it. */
final class GpuMemory implements MemorySource {
    private static final String OUT_OF_MEMORY =
            CUresult.stringFor(CUresult.CUDA_ERROR_OUT_OF_MEMORY);

    private final GpuContext gpu;
    private final CopyStreams copies;
    private final HostCopies hostCopies;

    /**
     * @param copies for staged buffers
     */
    GpuMemory(GpuContext gpu, CopyStreams copies, HostCopies hostCopies) {
        this.gpu = gpu;
        this.copies = copies;
        this.hostCopies = hostCopies;
    }

    @Override
    public OwnedBuffer take(String name, String scopePath, long bytes) {
        DevicePointer pointer = allocate(bytes);
        return zeroed(new GpuBuffer(gpu, hostCopies, name, scopePath, pointer, bytes), pointer);
    }

    @Override
    public OwnedBuffer takeStaged(String name, String scopePath, long bytes) {
        DevicePointer pointer = allocate(bytes);
        Held held = new Held(gpu, "staging memory of '%s'".formatted(name));
        try {
            return zeroed(
                    new StagedBuffer(
                            gpu, copies, hostCopies, name, scopePath, pointer, held, bytes),
                    pointer);
        } catch (CudaException e) {
            held.close();
            gpu.giveBack("'%s'".formatted(name), () -> JCudaDriver.cuMemFree(pointer));
            String doing =
                    "taking %,d bytes of pinned memory for GPU %d".formatted(bytes, gpu.index());
            throw String.valueOf(e.getMessage()).contains(OUT_OF_MEMORY)
                    ? new DeviceException(
                            doing
                                    + ": the host has none left; lower batch or slices, or raise the limit on locked memory",
                            e)
                    : GpuFailure.of(doing, e);
        }
    }

    @Override
    public boolean stages() {
        return true;
    }

    private DevicePointer allocate(long bytes) {
        DevicePointer pointer = new DevicePointer();
        try {
            gpu.bind();
            JCudaDriver.cuMemAlloc(pointer, bytes);
        } catch (CudaException e) {
            throw String.valueOf(e.getMessage()).contains(OUT_OF_MEMORY)
                    ? full(e)
                    : GpuFailure.of("taking memory of GPU " + gpu.index(), e);
        }
        return pointer;
    }

    private DeviceException full(CudaException e) {
        long[] free = new long[1];
        long[] total = new long[1];
        try {
            JCudaDriver.cuMemGetInfo(free, total);
        } catch (CudaException lost) {
            return GpuFailure.of("asking for free memory of GPU " + gpu.index(), lost);
        }
        return new DeviceException(
                "GPU %d has %,d of its %,d bytes left; make the work smaller or use more GPUs"
                        .formatted(gpu.index(), free[0], total[0]),
                e);
    }

    /** Waits for the zeros: copies of other streams may be the next to use it. */
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
            throw GpuFailure.of("zeroing '%s' of GPU %d".formatted(buffer.name(), gpu.index()), e);
        } catch (DeviceException e) {
            buffer.free(); // what was asked for before does not go
            throw e;
        }
        return buffer;
    }
}
