package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceCollectives;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.nccl.Nccl;
import dev.penstock.cuda.nccl.NcclMember;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.UUID;
import java.util.function.LongConsumer;
import jcuda.CudaException;
import jcuda.driver.CUevent;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * NCCL on a stream of its own, beside the kernels: it waits for those that were asked for before,
 * and an event tells when it is done. Nobody waits in the driver for another member.
 */
final class GpuCollectives implements DeviceCollectives {
    private static final System.Logger LOG = System.getLogger(GpuCollectives.class.getName());

    /** What members need to leave who are all there. */
    private static final Duration LEAVING = Duration.ofSeconds(5);

    private final GpuContext gpu;
    private final Nccl library;
    private final Held held;
    private final StreamHandle stream;
    private final CUevent kernelsDone;

    /** Reached when each that is under way is done, the oldest first. */
    private final Deque<CUevent> underWay = new ArrayDeque<>();

    private final Deque<CUevent> idle = new ArrayDeque<>();
    private @Nullable NcclMember member;
    private long begun;
    private boolean closed;

    GpuCollectives(GpuContext gpu, Nccl library) {
        this.gpu = gpu;
        this.library = library;
        held = new Held(gpu, "what collectives need");
        try {
            stream = held.stream();
            kernelsDone = held.event();
        } catch (CudaException e) {
            held.close();
            throw GpuFailure.of("making a stream for collectives on GPU " + gpu.index(), e);
        }
    }

    @Override
    public String name() {
        return "NCCL %s in %s".formatted(library.version(), library.file());
    }

    @Override
    public int device() {
        return gpu.index();
    }

    @Override
    public UUID deviceId() {
        return gpu.uuid();
    }

    @Override
    public int idBytes() {
        return Nccl.ID_BYTES;
    }

    @Override
    public byte[] newId() {
        return library.newId();
    }

    @Override
    public void join(byte[] id, int members, int index) {
        gpu.bind();
        NcclMember joined = library.join(id, members, index);
        synchronized (this) {
            if (!closed) {
                member = joined;
                return;
            }
        }
        joined.abort(); // nobody waits for it any more
    }

    @Override
    public long allReduce(Tensor tensor) {
        return begin(
                "all-reduce",
                stream ->
                        joined().allReduce(
                                        GpuBuffer.addressOf(tensor, gpu),
                                        tensor.elements(),
                                        tensor.type(),
                                        stream));
    }

    @Override
    public long reduceScatter(Tensor whole, long[] bounds) {
        return begin(
                "reduce-scatter",
                stream ->
                        joined().reduceScatter(
                                        GpuBuffer.addressOf(whole, gpu),
                                        bounds,
                                        whole.type(),
                                        stream));
    }

    @Override
    public long allGather(Tensor whole, long[] bounds) {
        return begin(
                "all-gather",
                stream ->
                        joined().allGather(
                                        GpuBuffer.addressOf(whole, gpu),
                                        bounds,
                                        whole.type(),
                                        stream));
    }

    private long begin(String what, LongConsumer work) {
        try {
            gpu.giving();
            gpu.bind();
            JCudaDriver.cuEventRecord(kernelsDone, gpu.stream());
            JCudaDriver.cuStreamWaitEvent(stream, kernelsDone, 0);
            work.accept(stream.handle());
            CUevent done = idle.isEmpty() ? held.event() : idle.pop();
            JCudaDriver.cuEventRecord(done, stream);
            underWay.add(done);
            return begun++;
        } catch (CudaException e) {
            throw GpuFailure.of("%s on GPU %d".formatted(what, gpu.index()), e);
        } catch (DeviceException e) {
            gpu.requireWell("%s on GPU %d".formatted(what, gpu.index()));
            throw e;
        }
    }

    private NcclMember joined() {
        NcclMember now = member;
        if (now == null) {
            throw new IllegalStateException("GPU %d has joined no others".formatted(gpu.index()));
        }
        return now;
    }

    @Override
    public boolean isDone(long number) {
        if (number < begun - underWay.size()) {
            return true;
        }
        try {
            gpu.bind();
            while (!underWay.isEmpty()) {
                JCudaDriver.cuEventQuery(underWay.getFirst());
                idle.push(underWay.remove());
            }
        } catch (CudaException e) {
            if (!String.valueOf(e.getMessage()).contains(GpuContext.NOT_READY)) {
                throw GpuFailure.of("a collective on GPU " + gpu.index(), e);
            }
        }
        joined().requireWell();
        return number < begun - underWay.size();
    }

    @Override
    public void close() {
        NcclMember left;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            left = member;
        }
        if (left != null && !leave(left)) {
            return; // the library may still use the stream
        }
        gpu.giveBack("the stream of collectives", () -> JCudaDriver.cuStreamSynchronize(stream));
        held.close();
    }

    /**
     * Leaves, for which the library waits until all members on this machine do so too; one of them
     * may be gone.
     *
     * @return whether it came to an end in time
     */
    private boolean leave(NcclMember leaver) {
        boolean isIdle = underWay.isEmpty();
        Thread leaving =
                Thread.ofPlatform()
                        .daemon()
                        .name("leaving NCCL on GPU " + gpu.index())
                        .start(
                                () ->
                                        gpu.giveBack(
                                                "a member of NCCL",
                                                // its stream would wait for the others
                                                isIdle ? leaver::close : leaver::abort));
        boolean ended = false;
        try {
            ended = leaving.join(LEAVING);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (!ended) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "GPU {0}: not all members of a group left NCCL within {1}; what it holds stays"
                            + " until the process ends",
                    gpu.index(),
                    LEAVING);
        }
        return ended;
    }
}
