package dev.penstock.cuda.gpu;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import jcuda.CudaException;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;

/**
 * Memory of a GPU with as much pinned memory of the host beside it, and copies between the two that
 * run beside kernels. The rank's thread only, but for the pinned memory itself.
 */
final class StagedBuffer extends GpuBuffer {
    private final CopyStreams copies;
    private final HostPointer pinned;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment staging;

    /** Reached when the kernels before a copy are done. */
    private final CUevent kernelsDone = new CUevent();

    private final CUevent copied = new CUevent();
    private boolean copying;

    StagedBuffer(
            GpuContext gpu,
            CopyStreams copies,
            String name,
            String scopePath,
            DevicePointer pointer,
            HostPointer pinned,
            long bytes) {
        super(gpu, name, scopePath, pointer, bytes);
        this.copies = copies;
        this.pinned = pinned;
        this.staging = MemorySegment.ofAddress(pinned.address()).reinterpret(bytes, arena, null);
        JCudaDriver.cuEventCreate(kernelsDone, CUevent_flags.CU_EVENT_DISABLE_TIMING);
        JCudaDriver.cuEventCreate(copied, CUevent_flags.CU_EVENT_DISABLE_TIMING);
    }

    @Override
    public MemorySegment staging() {
        checkAlive();
        return staging;
    }

    @Override
    public void beginToHost(long bytes) {
        begin(
                "copying '%s' from GPU %d",
                copies.toHost(),
                stream -> JCudaDriver.cuMemcpyDtoHAsync(pinned, pointer(0), bytes, stream));
    }

    @Override
    public void beginToDevice(long bytes) {
        begin(
                "copying '%s' to GPU %d",
                copies.toDevice(),
                stream -> JCudaDriver.cuMemcpyHtoDAsync(pointer(0), pinned, bytes, stream));
    }

    @Override
    public void kernelsAwaitCopy() {
        checkAlive();
        try {
            gpu.bind();
            gpu.giving();
            JCudaDriver.cuStreamWaitEvent(gpu.stream(), copied, 0);
        } catch (CudaException e) {
            throw GpuFailure.of("waiting for '%s' on GPU %d".formatted(name(), gpu.index()), e);
        }
    }

    /** Kernels that were asked for before may still use the memory: the copy waits for them. */
    private void begin(String what, CUstream stream, Consumer<CUstream> copy) {
        checkAlive();
        try {
            gpu.bind();
            JCudaDriver.cuEventRecord(kernelsDone, gpu.stream());
            JCudaDriver.cuStreamWaitEvent(stream, kernelsDone, 0);
            copy.accept(stream);
            JCudaDriver.cuEventRecord(copied, stream);
            copying = true;
        } catch (CudaException e) {
            throw GpuFailure.of(what.formatted(name(), gpu.index()), e);
        }
    }

    @Override
    public boolean isCopied() {
        if (!copying) {
            return true;
        }
        try {
            gpu.bind();
            JCudaDriver.cuEventQuery(copied);
        } catch (CudaException e) {
            if (String.valueOf(e.getMessage()).contains(GpuContext.NOT_READY)) {
                return false;
            }
            throw GpuFailure.of("copying '%s' of GPU %d".formatted(name(), gpu.index()), e);
        }
        copying = false;
        return true;
    }

    @Override
    public void free() {
        try {
            gpu.bind();
            copies.finish();
        } catch (CudaException e) {
            warn(e);
        }
        super.free();
        arena.close();
        try {
            JCudaDriver.cuEventDestroy(kernelsDone);
            JCudaDriver.cuEventDestroy(copied);
            JCudaDriver.cuMemFreeHost(pinned);
        } catch (CudaException e) {
            warn(e);
        }
    }

    private void warn(CudaException e) {
        System.getLogger(StagedBuffer.class.getName())
                .log(System.Logger.Level.WARNING, "freeing '%s'".formatted(name()), e);
    }
}
