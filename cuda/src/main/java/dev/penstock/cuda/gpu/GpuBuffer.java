package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.memory.OwnedBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import jcuda.CudaException;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUmem_advise;
import jcuda.driver.JCudaDriver;

/**
 * A block of a GPU's memory. The host sees it through {@link #segment}, which first waits for the
 * kernels that were asked for.
 */
sealed class GpuBuffer implements OwnedBuffer permits StagedBuffer {
    private static final System.Logger LOG = System.getLogger(GpuBuffer.class.getName());

    final GpuContext gpu;
    private final String name;
    private final String scopePath;
    private final DevicePointer pointer;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment segment;
    private volatile boolean freed;
    private volatile boolean readByBoth;

    GpuBuffer(GpuContext gpu, String name, String scopePath, DevicePointer pointer, long bytes) {
        this.gpu = gpu;
        this.name = name;
        this.scopePath = scopePath;
        this.pointer = pointer;
        this.segment = MemorySegment.ofAddress(pointer.address()).reinterpret(bytes, arena, null);
    }

    /**
     * Where a tensor's elements begin.
     *
     * @throws DeviceException if they are no GPU's: a kernel that used them would end the context
     */
    static long addressOf(Tensor tensor) {
        if (!(tensor.buffer() instanceof GpuBuffer)) {
            throw new DeviceException("a kernel of a GPU: expected memory of a GPU, got " + tensor);
        }
        return tensor.address();
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
        checkAlive();
        return pointer.address();
    }

    @Override
    public MemorySegment segment() {
        checkAlive();
        gpu.finish();
        return segment;
    }

    /**
     * What the host reads while kernels read it too, without waiting for them: it may be what was
     * there before them. Each keeps a copy, or its pages would travel to and fro at every turn.
     */
    MemorySegment segmentNow() {
        checkAlive();
        if (!readByBoth) {
            readByBoth = true;
            try {
                gpu.bind();
                JCudaDriver.cuMemAdvise(
                        pointer, bytes(), CUmem_advise.CU_MEM_ADVISE_SET_READ_MOSTLY, gpu.device());
            } catch (CudaException e) {
                throw GpuFailure.of("placing '%s' of GPU %d".formatted(name, gpu.index()), e);
            }
        }
        return segment;
    }

    /** For calls of the driver. */
    CUdeviceptr pointer(long offsetBytes) {
        checkAlive();
        return pointer.withByteOffset(offsetBytes);
    }

    final void checkAlive() {
        if (freed) {
            throw new DeviceException(
                    "use of buffer '%s' of scope '%s': expected it alive, but its scope was closed; keep it in a longer-lived scope"
                            .formatted(name, scopePath));
        }
    }

    /**
     * Waits for kernels that may use it: the driver promises no wait of its own. A lost GPU has
     * lost its memory too: that must not keep a scope from closing.
     */
    @Override
    public void free() {
        freed = true;
        arena.close();
        try {
            gpu.finish();
        } catch (DeviceException e) {
            LOG.log(System.Logger.Level.DEBUG, "nothing uses it any more", e);
        }
        try {
            gpu.bind();
            JCudaDriver.cuMemFree(pointer);
        } catch (CudaException e) {
            LOG.log(System.Logger.Level.WARNING, "freeing '%s'".formatted(name), e);
        }
    }
}
