package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import jcuda.CudaException;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUresult;
import jcuda.driver.CUstream_flags;
import jcuda.driver.CUuuid;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * A GPU's primary context (the one that libraries of the process share) and the stream of its
 * kernels. The driver binds contexts to threads: every call here binds first, so that any thread
 * may allocate, free and wait; kernels come from one thread at a time.
 */
final class GpuContext implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(GpuContext.class.getName());

    /** The answer to a question about work that goes on. */
    static final String NOT_READY = CUresult.stringFor(CUresult.CUDA_ERROR_NOT_READY);

    private final int index;
    private final CUdevice device;
    private final CUcontext context = new CUcontext();
    private final StreamHandle stream = new StreamHandle();

    /** Pieces of work given to the stream. */
    private final AtomicLong given = new AtomicLong();

    /** Contexts whose memory kernels of this one may use. */
    private final Set<GpuContext> reached = ConcurrentHashMap.newKeySet();

    private long finished;
    private boolean closed;
    private @Nullable StreamCollector collector;

    /**
     * Retains the primary context.
     *
     * @param index as the driver counts; there is such a GPU
     */
    GpuContext(int index) {
        this.index = index;
        try {
            this.device = device(index);
            JCudaDriver.cuDevicePrimaryCtxRetain(context, device);
        } catch (CudaException e) {
            throw GpuFailure.of("opening GPU " + index, e);
        }
        try {
            bind();
            JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING);
        } catch (CudaException e) {
            giveBack("its context", () -> JCudaDriver.cuDevicePrimaryCtxRelease(device));
            throw GpuFailure.of("making a stream on GPU " + index, e);
        }
    }

    private static CUdevice device(int index) {
        CUdevice device = new CUdevice();
        JCudaDriver.cuDeviceGet(device, index);
        return device;
    }

    int index() {
        return index;
    }

    CUdevice device() {
        return device;
    }

    /** Of the GPU, the same in all processes. */
    UUID uuid() {
        CUuuid uuid = new CUuuid();
        try {
            JCudaDriver.cuDeviceGetUuid(uuid, device);
        } catch (CudaException e) {
            throw GpuFailure.of("asking for the identity of GPU " + index, e);
        }
        ByteBuffer bytes = ByteBuffer.wrap(uuid.bytes);
        return new UUID(bytes.getLong(), bytes.getLong());
    }

    /**
     * Lets kernels of this GPU use the memory of another, or of the same by another context.
     *
     * @param what is there, for the message
     * @throws DeviceException if the machine's wiring does not allow it
     */
    void reach(GpuContext other, String what) {
        if (reached.contains(other)) {
            return;
        }
        if (!PeerAccess.enable(this, other)) {
            throw new DeviceException(
                    "kernels of GPU %d: expected memory that they can use, but '%s' is on GPU %d, and neither sees the other's memory; try pipeline.processes = per-stage, parallel.collectives = nccl or one GPU for all ranks (device.kind = \"cuda:%d\")"
                            .formatted(index, what, other.index, index));
        }
        reached.add(other);
    }

    /** For calls of the driver about two contexts. */
    CUcontext handle() {
        return context;
    }

    StreamHandle stream() {
        return stream;
    }

    /** Binds the context to the calling thread. */
    void bind() {
        JCudaDriver.cuCtxSetCurrent(context);
    }

    /**
     * Gives something back to the driver; never throws. A lost GPU refuses to take it, which is no
     * news by then.
     */
    void giveBack(String what, Runnable call) {
        try {
            bind();
            call.run();
        } catch (CudaException e) {
            String doing = "giving %s back to GPU %d".formatted(what, index);
            boolean lost = GpuFailure.of(doing, e) instanceof DeviceLostException;
            LOG.log(lost ? System.Logger.Level.DEBUG : System.Logger.Level.WARNING, doing, e);
        }
    }

    /** Waits, before something is given back, for what may use it; never throws. */
    void finishAnyway() {
        try {
            finish();
        } catch (DeviceException e) {
            LOG.log(System.Logger.Level.DEBUG, "nothing runs any more", e);
        }
    }

    /** From now on work that is asked for waits until somebody waits for it. */
    void collectIn(StreamCollector collected) {
        collector = collected;
    }

    /** Whether {@link #collect} is to be asked for work. */
    boolean collects() {
        return collector != null;
    }

    /** Asks for work that may begin later; only where work is collected. */
    void collect(StreamWork work, long[] numbers, int count) {
        Objects.requireNonNull(collector).add(work, numbers, count);
        gave();
    }

    /** To be told before work is given to the stream: what was asked for before goes first. */
    void giving() {
        if (collector != null) {
            collector.flush();
        }
    }

    /**
     * To be told after the stream was given work that somebody may wait for; before would be too
     * early, as another thread's wait may come between.
     */
    void gave() {
        given.incrementAndGet();
    }

    /**
     * Waits until the stream has done what it was given; costs next to nothing if it has.
     *
     * @throws DeviceException if work failed
     */
    void finish() {
        long all = given.get();
        giving();
        CudaException failure = null;
        synchronized (stream) {
            if (finished >= all || closed) {
                return;
            }
            try {
                bind();
                JCudaDriver.cuStreamSynchronize(stream);
            } catch (CudaException e) {
                failure = e;
            }
            finished = failure == null ? all : finished;
        }
        if (failure != null) {
            String of = collector == null ? "" : " (" + collector.unfinished() + ")";
            throw GpuFailure.of("waiting for kernels%s on GPU %d".formatted(of, index), failure);
        }
        if (collector != null) {
            collector.finished();
        }
    }

    /**
     * Asks the driver what a library that failed does not say; binds the context.
     *
     * @throws DeviceException if the context has failed
     */
    void requireWell(String doing) {
        try {
            bind();
            JCudaDriver.cuStreamQuery(stream);
        } catch (CudaException e) {
            if (!String.valueOf(e.getMessage()).contains(NOT_READY)) {
                throw GpuFailure.of(doing, e);
            }
        }
    }

    /** Gives the context back; memory must be freed before. Never throws: a lost GPU closes too. */
    @Override
    public void close() {
        synchronized (stream) {
            if (closed) {
                return;
            }
            closed = true;
            giveBack("its stream", () -> JCudaDriver.cuStreamDestroy(stream));
            giveBack("its context", () -> JCudaDriver.cuDevicePrimaryCtxRelease(device));
        }
    }
}
