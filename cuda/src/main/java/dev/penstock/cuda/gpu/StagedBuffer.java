package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import jcuda.CudaException;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * Memory of a GPU with as much pinned memory of the host beside it, and copies between the two, or
 * to such memory of another GPU, that run beside kernels. The rank's thread only, but for the
 * pinned memory itself and for being copied to.
 */
final class StagedBuffer extends GpuBuffer {
    private final CopyStreams copies;
    private final Held held;
    private final HostPointer pinned;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment staging;

    /** Reached when the kernels before a copy are done. */
    private final CUevent kernelsDone;

    private final CUevent copied;
    private boolean copying;

    /** Where the copy begun last goes to; null if to or from the host. */
    private @Nullable StagedBuffer target;

    /** From where the last copy to here came, which this memory outlives. */
    private volatile @Nullable StagedBuffer source;

    private boolean eventsGone;

    /**
     * @param held to hold the pinned memory and the events; given back by the caller if this throws
     * @throws CudaException if the driver does not give them
     */
    StagedBuffer(
            GpuContext gpu,
            CopyStreams copies,
            HostCopies hostCopies,
            String name,
            String scopePath,
            DevicePointer pointer,
            Held held,
            long bytes) {
        super(gpu, hostCopies, name, scopePath, pointer, bytes);
        this.copies = copies;
        this.held = held;
        this.pinned = held.pinned(bytes, 0);
        this.kernelsDone = held.event();
        this.copied = held.event();
        this.staging = MemorySegment.ofAddress(pinned.address()).reinterpret(bytes, arena, null);
    }

    @Override
    public boolean isStaged() {
        return true;
    }

    @Override
    public MemorySegment staging() {
        checkAlive();
        return staging;
    }

    @Override
    public void beginToHost(long bytes) {
        begin(
                null,
                copies.toHost(),
                stream -> JCudaDriver.cuMemcpyDtoHAsync(pinned, pointer(0), bytes, stream));
    }

    @Override
    public void beginToDevice(long bytes) {
        begin(
                null,
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
            gpu.gave();
        } catch (CudaException e) {
            throw GpuFailure.of("waiting for '%s' on GPU %d".formatted(name(), gpu.index()), e);
        }
    }

    @Override
    public boolean reaches(DeviceBuffer other) {
        return other instanceof StagedBuffer staged && PeerAccess.enable(gpu, staged.gpu);
    }

    @Override
    public void beginCopyTo(DeviceBuffer other, long bytes) {
        if (!(other instanceof StagedBuffer to)) {
            super.beginCopyTo(other, bytes);
            return;
        }
        to.checkAlive();
        to.source = this;
        begin(
                to,
                copies.toPeers(),
                stream -> {
                    JCudaDriver.cuStreamWaitEvent(stream, to.kernelsDone, 0);
                    if (to.gpu.index() == gpu.index()) {
                        JCudaDriver.cuMemcpyDtoDAsync(to.pointer(0), pointer(0), bytes, stream);
                    } else {
                        JCudaDriver.cuMemcpyPeerAsync(
                                to.pointer(0),
                                to.gpu.handle(),
                                pointer(0),
                                gpu.handle(),
                                bytes,
                                stream);
                    }
                });
    }

    @Override
    public void lastUsed() {
        checkAlive();
        try {
            gpu.giving();
            gpu.bind();
            JCudaDriver.cuEventRecord(kernelsDone, gpu.stream());
        } catch (CudaException e) {
            throw GpuFailure.of("handing '%s' of GPU %d over".formatted(name(), gpu.index()), e);
        }
    }

    /** Kernels that were asked for before may still use the memory: the copy waits for them. */
    private void begin(@Nullable StagedBuffer newTarget, CUstream stream, Consumer<CUstream> copy) {
        checkAlive();
        target = newTarget;
        try {
            gpu.giving();
            gpu.bind();
            JCudaDriver.cuEventRecord(kernelsDone, gpu.stream());
            JCudaDriver.cuStreamWaitEvent(stream, kernelsDone, 0);
            copy.accept(stream);
            JCudaDriver.cuEventRecord(copied, stream);
            copying = true;
        } catch (CudaException e) {
            throw failure(e);
        }
    }

    /**
     * A copy between two GPUs fails where either is lost: only the sender's own is a {@link
     * dev.penstock.cuda.device.DeviceLostException}, as that is the one its rank gives up.
     */
    private DeviceException failure(CudaException e) {
        StagedBuffer to = target;
        if (to != null && to.gpu.index() != gpu.index()) {
            try {
                gpu.requireWell("%s; GPU %d".formatted(doing(), gpu.index()));
            } catch (DeviceException ours) {
                return ours;
            }
            try {
                to.gpu.requireWell("%s; GPU %d".formatted(doing(), to.gpu.index()));
            } catch (DeviceException theirs) {
                return new DeviceException(String.valueOf(theirs.getMessage()), theirs);
            }
        }
        return GpuFailure.of(doing(), e);
    }

    private String doing() {
        StagedBuffer to = target;
        return to == null
                ? "copying '%s' between the host and GPU %d".formatted(name(), gpu.index())
                : "copying '%s' to '%s' of GPU %d from GPU %d"
                        .formatted(name(), to.name(), to.gpu.index(), gpu.index());
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
            throw failure(e);
        }
        copying = false;
        return true;
    }

    @Override
    public void free() {
        StagedBuffer from = source;
        if (from != null) {
            from.awaitCopy();
        }
        gpu.giveBack("'%s' under a copy".formatted(name()), copies::finish);
        super.free();
        arena.close();
        synchronized (this) {
            eventsGone = true;
            held.close();
        }
    }

    /** By the thread that frees what this buffer was copied to. */
    private synchronized void awaitCopy() {
        if (eventsGone) {
            return;
        }
        gpu.giveBack(
                "the target of '%s'".formatted(name()),
                () -> JCudaDriver.cuEventSynchronize(copied));
    }
}
