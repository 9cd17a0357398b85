package dev.penstock.cuda.gpu;

import jcuda.CudaException;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/**
 * The streams of a GPU's copies: one for each direction, so that all of its copy engines work
 * beside its kernels.
 */
final class CopyStreams implements AutoCloseable {
    private final GpuContext gpu;
    private final CUstream toHost = new CUstream();
    private final CUstream toDevice = new CUstream();
    private final CUstream toPeers = new CUstream();
    private boolean closed;

    CopyStreams(GpuContext gpu) {
        this.gpu = gpu;
        try {
            gpu.bind();
            JCudaDriver.cuStreamCreate(toHost, CUstream_flags.CU_STREAM_NON_BLOCKING);
            JCudaDriver.cuStreamCreate(toDevice, CUstream_flags.CU_STREAM_NON_BLOCKING);
            JCudaDriver.cuStreamCreate(toPeers, CUstream_flags.CU_STREAM_NON_BLOCKING);
        } catch (CudaException e) {
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
        if (closed) {
            return;
        }
        closed = true;
        try {
            gpu.bind();
            JCudaDriver.cuStreamDestroy(toHost);
            JCudaDriver.cuStreamDestroy(toDevice);
            JCudaDriver.cuStreamDestroy(toPeers);
        } catch (CudaException e) {
            System.getLogger(CopyStreams.class.getName())
                    .log(System.Logger.Level.WARNING, "closing copies of GPU " + gpu.index(), e);
        }
    }
}
