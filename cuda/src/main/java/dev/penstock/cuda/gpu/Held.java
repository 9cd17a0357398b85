package dev.penstock.cuda.gpu;

import java.util.ArrayDeque;
import java.util.Deque;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/**
 * What one purpose got from the driver of a GPU, given back together, the last first. What makes
 * something throws the driver's exception; closing never throws, and may be repeated.
 */
final class Held implements AutoCloseable {
    private final GpuContext gpu;
    private final String what;
    private final Deque<Runnable> back = new ArrayDeque<>();

    /**
     * @param what for the message if the driver does not take it back
     */
    Held(GpuContext gpu, String what) {
        this.gpu = gpu;
        this.what = what;
    }

    StreamHandle stream() {
        StreamHandle stream = new StreamHandle();
        gpu.bind();
        JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING);
        back.push(() -> JCudaDriver.cuStreamDestroy(stream));
        return stream;
    }

    CUevent event() {
        CUevent event = new CUevent();
        gpu.bind();
        JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DISABLE_TIMING);
        back.push(() -> JCudaDriver.cuEventDestroy(event));
        return event;
    }

    /**
     * Pinned memory of the host.
     *
     * @param flags beside that of all contexts
     */
    HostPointer pinned(long bytes, int flags) {
        HostPointer pinned = new HostPointer();
        gpu.bind();
        JCudaDriver.cuMemHostAlloc(pinned, bytes, flags | JCudaDriver.CU_MEMHOSTALLOC_PORTABLE);
        back.push(() -> JCudaDriver.cuMemFreeHost(pinned));
        return pinned;
    }

    @Override
    public void close() {
        while (!back.isEmpty()) {
            gpu.giveBack(what, back.pop());
        }
    }
}
