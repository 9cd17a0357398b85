package dev.penstock.cuda.gpu;

import jcuda.CudaException;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;

/**
 * The streams of a GPU's copies: one for each direction, so that all of its copy engines work
 * beside its kernels.
 */
final class CopyStreams implements AutoCloseable {
    private final Held held;
    private final CUstream toHost;
    private final CUstream toDevice;
    private final CUstream toPeers;

    CopyStreams(GpuContext gpu) {
        held = new Held(gpu, "streams for copies");
        try {
            toHost = held.stream();
            toDevice = held.stream();
            toPeers = held.stream();
        } catch (CudaException e) {
            held.close();
            throw GpuFailure.of("making streams for copies on GPU " + gpu.index(), e);
        }
    }

    CUstream toHost() {
        return toHost;
    }

    CUstream toDevice() {
        return toDevice;
    }

    /** To other devices of this process. */
    CUstream toPeers() {
        return toPeers;
    }

    /** Waits for all copies: memory under a copy must not be freed. */
    void finish() {
        JCudaDriver.cuStreamSynchronize(toHost);
        JCudaDriver.cuStreamSynchronize(toDevice);
        JCudaDriver.cuStreamSynchronize(toPeers);
    }

    /** Idempotent. Never throws: a lost GPU closes too. */
    @Override
    public void close() {
        held.close();
    }
}
