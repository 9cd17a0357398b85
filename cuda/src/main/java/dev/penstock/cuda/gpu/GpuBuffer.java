package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.memory.OwnedBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/** A block of a GPU's memory, which the host does not see: bytes come and go by copies. */
sealed class GpuBuffer implements OwnedBuffer permits StagedBuffer {
    final GpuContext gpu;
    private final String name;
    private final String scopePath;
    private final DevicePointer pointer;
    private final long bytes;
    private final HostCopies copies;
    private volatile boolean freed;

    /** The same indices as here; null if the host wrote none. */
    private @Nullable MemorySegment indices;

    /**
     * @param copies of the same GPU
     */
    GpuBuffer(
            GpuContext gpu,
            HostCopies copies,
            String name,
            String scopePath,
            DevicePointer pointer,
            long bytes) {
        this.gpu = gpu;
        this.copies = copies;
        this.name = name;
        this.scopePath = scopePath;
        this.pointer = pointer;
        this.bytes = bytes;
    }

    /**
     * Where a tensor's elements begin, for a kernel or a library of a GPU.
     *
     * @throws DeviceException if that GPU cannot use them: the kernel would end the context
     */
    static long addressOf(Tensor tensor, GpuContext user) {
        if (!(tensor.buffer() instanceof GpuBuffer buffer)) {
            throw new DeviceException("a kernel of a GPU: expected memory of a GPU, got " + tensor);
        }
        if (buffer.gpu != user) {
            user.reach(buffer.gpu, buffer.name);
        }
        return tensor.address();
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public long bytes() {
        return bytes;
    }

    @Override
    public long address() {
        checkAlive();
        return pointer.address();
    }

    @Override
    public final boolean isHostMemory() {
        return false;
    }

    @Override
    public final MemorySegment segment() {
        throw new DeviceException(
                "use of buffer '%s' by the host: expected its staging memory or a copy, it lies on GPU %d alone"
                        .formatted(name, gpu.index()));
    }

    @Override
    public MemorySegment contents(long offset, long wanted) {
        MemorySegment copy = Arena.ofAuto().allocate(wanted, Long.BYTES);
        read(offset, copy);
        return copy;
    }

    @Override
    public void read(long offset, MemorySegment target) {
        checkAlive();
        Objects.checkFromIndexSize(offset, target.byteSize(), bytes);
        copies.read(this, offset, target);
    }

    @Override
    public void write(long offset, MemorySegment source) {
        checkAlive();
        Objects.checkFromIndexSize(offset, source.byteSize(), bytes);
        copies.write(this, offset, source);
    }

    @Override
    public void writeIndices(long offset, MemorySegment source) {
        write(offset, source);
        if (indices == null) {
            indices =
                    MemorySegment.ofArray(
                            new int[Math.toIntExact(Math.ceilDiv(bytes, Integer.BYTES))]);
        }
        MemorySegment.copy(source, 0, indices, offset, source.byteSize());
    }

    /**
     * The indices of a tensor as the host wrote them.
     *
     * @throws DeviceException if it did not
     */
    MemorySegment indices(Tensor tensor) {
        checkAlive();
        MemorySegment written = indices;
        if (written == null) {
            throw new DeviceException(
                    "buffer '%s' of GPU %d: expected indices that the host wrote, got none"
                            .formatted(name, gpu.index()));
        }
        return written.asSlice(tensor.offsetBytes(), tensor.bytes());
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
        gpu.finishAnyway();
        gpu.giveBack("'%s'".formatted(name), () -> JCudaDriver.cuMemFree(pointer));
    }
}
